"""What NCCL does on a machine, why, and how fast: the program simccl as functions.

    >>> import simccl
    >>> r = simccl.run("all_reduce", topo="dgx-h100", nodes=4, sizes="1M,1G", env={"NCCL_ALGO": "Ring"})
    >>> r.rows[1]["out_of_place"]["bus_bw"]
    >>> r.frame()                                    # pandas, where it is installed
    >>> simccl.explain("all_reduce", "2M", nodes=4)["choice"]["algo"]

Options are those of the command line, with _ for -, True for an option without a value, lists for repeated
ones and a dict for env. Sizes are in bytes or as "1M" (binary), times in microseconds, bandwidths in GB/s of
10**9 bytes. A Spec has the members of a scenario file, which are those of simccl.Spec in Go.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Iterable, Mapping, Optional, Sequence, TypedDict, Union

__all__ = ["Error", "Result", "Spec", "call", "diagnose", "diff", "explain", "inspect", "machines", "program",
           "replay", "run", "run_job", "sweep", "version"]

Size = Union[int, str]
File = Union[str, "os.PathLike[str]"]

#: Names of the exit statuses (simccl help exit-codes).
STATUS = {1: "internal", 2: "device", 3: "nccl", 4: "timeout", 5: "not implemented", 6: "usage", 7: "check",
          8: "input", 9: "no hardware", 75: "work is left"}


class Spec(TypedDict, total=False):
    """A run as data: docs/SWEEPS.md#scenario-files lists the members of each part."""

    machine: Mapping[str, Any]
    nccl: Mapping[str, Any]
    network: Mapping[str, Any]
    workload: Mapping[str, Any]
    engine: Mapping[str, Any]
    outputs: Mapping[str, Any]


class Error(Exception):
    """The program ended with an error: kind is "input", "usage", …, message says what to write instead."""

    def __init__(self, status: int, message: str, args: Sequence[str], result: Any = None):
        super().__init__(message)
        self.status, self.kind, self.message = status, STATUS.get(status, "other"), message
        self.command, self.result = list(args), result


class Result(dict):
    """A document that the program printed, a dict, with its notes: what the program said beside it."""

    notes: str = ""

    @property
    def rows(self) -> list:
        """The rows of a table: one for each size, point, file or suspect."""
        for name in ("results", "rows", "points", "sizes", "calls"):
            if isinstance(self.get(name), list):
                return self[name]
        raise Error(6, "this document has no rows; its members are " + ", ".join(self), [])

    def frame(self):
        """The rows as a pandas.DataFrame: nested members as columns, out_of_place.time."""
        try:
            import pandas
        except ImportError as e:
            raise Error(9, "frame() needs pandas: pip install pandas; rows has the same as a list", []) from e
        return pandas.DataFrame([flat(row) for row in self.rows])


def flat(row: Mapping[str, Any], before: str = "") -> dict:
    """A nested row with one level: {"a": {"b": 1}} is {"a.b": 1}."""
    out: dict = {}
    for name, value in row.items():
        if isinstance(value, Mapping):
            out.update(flat(value, before + name + "."))
        else:
            out[before + name] = value
    return out


def program() -> str:
    """The program: what SIMCCL_PROGRAM names, that of the wheel, else simccl on the path."""
    named = os.environ.get("SIMCCL_PROGRAM")
    if named:
        return named
    inside = Path(__file__).parent / "bin" / ("simccl.exe" if sys.platform == "win32" else "simccl")
    found = str(inside) if inside.exists() else shutil.which("simccl")
    if not found:
        raise Error(9, "there is no program simccl: install a wheel that has it, put it on the path, or name "
                       "it in SIMCCL_PROGRAM", [])
    return found


def arguments(options: Mapping[str, Any]) -> list:
    """Options as words of a command line: {"nodes": 4, "quiet": True} is ["--nodes=4", "--quiet"]."""
    words = []
    for name, value in options.items():
        flag = ("-" if len(name) == 1 else "--") + name.replace("_", "-")
        if name == "env" and isinstance(value, Mapping):
            value = [f"{k}={v}" for k, v in value.items()]
        elif name in ("sizes", "columns") and not isinstance(value, (str, int)):
            value = ",".join(str(v) for v in value)
        for v in value if isinstance(value, (list, tuple)) else [value]:
            if v is True:
                words.append(flag)
            elif v is not None and v is not False:
                words.append(f"{flag}={os.fspath(v) if isinstance(v, os.PathLike) else v}")
    return words


def call(*command: str, timeout: Optional[float] = None, cwd: Optional[File] = None, **options: Any) -> Any:
    """Run any command with --json and return its document: call("topo", "list").

    Raises Error where the program ends with one; status 7 (a check failed) has the document in Error.result.
    """
    words = [program(), *map(str, command), *arguments(options), "--json"]
    try:
        done = subprocess.run(words, capture_output=True, text=True, encoding="utf-8", timeout=timeout, cwd=cwd,
                              check=False)
    except subprocess.TimeoutExpired as e:
        raise Error(4, f"{' '.join(words)}: not done after {timeout} s", words) from e
    document = None
    if done.stdout.strip():
        try:
            document = json.loads(done.stdout)
        except ValueError:
            if done.returncode == 0:
                raise Error(1, f"{' '.join(words)} printed no JSON: {done.stdout[:200]}", words) from None
    if isinstance(document, dict):
        document = Result(document)
        document.notes = done.stderr
    if done.returncode != 0:
        raise Error(done.returncode, done.stderr.strip() or f"exit status {done.returncode}", words, document)
    return document


def scenario(spec: Mapping[str, Any], *command: str, **how: Any) -> Any:
    """Run a command on a scenario; file names in it are relative to the folder of the program."""
    with tempfile.TemporaryDirectory() as folder:
        name = os.path.join(folder, "scenario.json")
        with open(name, "w", encoding="utf-8") as f:
            json.dump({"scenario": 1, **spec}, f)
        return call(*command, scenario=name, **how)


def run(op: Union[str, Spec], **options: Any) -> Result:
    """Simulate an operation over sizes: run("all_reduce", nodes=4, sizes="1M,1G"), or run(spec).

    rows[i]["size"] is in bytes, rows[i]["out_of_place"] has time (us), alg_bw and bus_bw (GB/s).
    """
    if isinstance(op, Mapping):
        return scenario(op, "run", **options)
    return call("run", op, **options)


def run_job(spec: Spec, **options: Any) -> Result:
    """Run the job of a Spec (workload.job): several communicators, streams and computation."""
    return scenario(spec, "run", **options)


def explain(op: str, size: Optional[Size] = None, **options: Any) -> Result:
    """Why NCCL chooses what it chooses, or, with one word, what it means: explain("LL128")."""
    return call("explain", op, *([] if size is None else [str(size)]), **options)


def inspect(**options: Any) -> Result:
    """The whole decision on a machine: system, graphs, channels, tuning, choices by size."""
    return call("inspect", **options)


def diff(*op: str, **options: Any) -> Result:
    """Compare two settings, machines or networks: diff("all_reduce", a="2.27.5", b="2.29.7")."""
    return call("diff", *op, **options)


def replay(*files: File, **options: Any) -> Result:
    """Run a recorded or generated job on a machine: replay("trace.json.gz", topo="dgx-h100", nodes=4)."""
    return call("replay", *map(os.fspath, files), **options)


def diagnose(*files: File, **options: Any) -> Result:
    """Say whether measured numbers are as expected, and if not, why: diagnose("out.txt", "nccl.log")."""
    return call("diagnose", *map(os.fspath, files), **options)


def machines(word: str = "") -> list:
    """The built-in machines, those whose name or title has word in it."""
    return call("topo", "list", *([word] if word else []))


def version() -> Result:
    """Version of the program and the rules that it follows."""
    return call("version")


def sweep(spec: Union[File, Mapping[str, Any]], out: Optional[File] = None, **options: Any) -> Result:
    """Run every point of a specification; the result's rows are the points, with axes and values.

    spec is a file or its content as a dict; out keeps results, so that a sweep that was interrupted goes on.
    """
    with tempfile.TemporaryDirectory() as folder:
        name = os.fspath(spec) if not isinstance(spec, Mapping) else os.path.join(folder, "sweep.json")
        if isinstance(spec, Mapping):
            with open(name, "w", encoding="utf-8") as f:
                json.dump(spec, f)
        results = os.fspath(out) if out is not None else os.path.join(folder, "results")
        notes = call("sweep", name, out=results, **options)
        rows = []
        for line in lines(Path(results)):
            point = json.loads(line)
            for row in point.get("result") or [{"error": point.get("error")}]:
                rows.append({**point["point"], **row})
        return Result(summary=notes, points=rows)


def lines(folder: Path) -> Iterable[str]:
    """The results of a sweep: a line of JSON for each point, in files of the processes that ran."""
    for name in sorted(folder.glob("*.jsonl")):
        with open(name, encoding="utf-8") as f:
            yield from (line for line in f if line.strip())
