"""Rules of the package, on the program that SIMCCL_PROGRAM names; python -m unittest discover -s python/tests."""

import json
import os
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

import simccl  # noqa: E402


class Calls(unittest.TestCase):
    def test_options_are_those_of_the_command_line(self):
        self.assertEqual(
            simccl.arguments({"nodes": 4, "b": "1K", "nccl_version": "2.27.5", "env": {"A": 1, "B": "x"},
                              "sizes": [8, "1M"], "quiet": True, "no_env": False, "fault": ["a", "b"], "seed": None,
                              "topo": Path("t.xml")}),
            ["--nodes=4", "-b=1K", "--nccl-version=2.27.5", "--env=A=1", "--env=B=x", "--sizes=8,1M", "--quiet",
             "--fault=a", "--fault=b", "--topo=t.xml"])

    def test_run_has_a_row_a_size(self):
        r = simccl.run("all_reduce", topo="dgx-a100", nodes=2, sizes=["1K", "1M"], env={"NCCL_ALGO": "Ring"})
        self.assertEqual([row["size"] for row in r.rows], [1024, 1048576])
        self.assertGreater(r.rows[1]["out_of_place"]["time"], r.rows[0]["out_of_place"]["time"])

    def test_a_spec_is_run_as_the_same_options_are(self):
        spec = {"machine": {"nodes": [{"topo": "dgx-a100", "count": 2}]},
                "workload": {"op": "all_reduce", "sizes": ["1M"]}}
        times = [r.rows[0]["out_of_place"]["time"]
                 for r in (simccl.run(spec), simccl.run("all_reduce", topo="dgx-a100", nodes=2, sizes="1M"))]
        self.assertEqual(times[0], times[1])

    def test_explain_gives_a_choice_or_a_word(self):
        self.assertEqual(simccl.explain("ll128")["word"], "LL128")
        why = simccl.explain("all_reduce", "2M", nodes=2, env={"NCCL_ALGO": "Ring"})
        self.assertEqual(why["choice"]["algo"], "Ring")

    def test_errors_say_what_to_write_instead(self):
        with self.assertRaises(simccl.Error) as e:
            simccl.run("all_reduce", topo="nowhere")
        self.assertEqual(e.exception.kind, "input")
        self.assertIn("nowhere", e.exception.message)
        with self.assertRaises(simccl.Error) as e:
            simccl.run("all_redcue")
        self.assertEqual(e.exception.kind, "usage")

    def test_sweep_has_a_row_a_point(self):
        r = simccl.sweep({"base": {"workload": {"op": "all_reduce"}},
                          "grid": {"nodes": [1, 2], "size": ["8", "1M"]}})
        self.assertEqual(sorted((p["nodes"], p["bytes"]) for p in r.rows),
                         [(1, 8), (1, 1048576), (2, 8), (2, 1048576)])

    def test_notes_are_what_the_program_said(self):
        r = simccl.run("all_reduce", sizes=8, nodes=1, env={"NCCL_NO_SUCH": 1})
        self.assertIn("NCCL_NO_SUCH", r.notes)

    def test_rows_are_flat_in_a_frame(self):
        self.assertEqual(simccl.flat({"a": {"b": 1, "c": {"d": 2}}, "e": [3]}), {"a.b": 1, "a.c.d": 2, "e": [3]})
        r = simccl.run("all_reduce", sizes=8, nodes=1)
        try:
            import pandas  # noqa: F401
        except ImportError:
            with self.assertRaises(simccl.Error) as e:
                r.frame()
            self.assertIn("pip install pandas", str(e.exception))
        else:
            self.assertIn("out_of_place.time", r.frame().columns)

    def test_no_program_is_an_error_that_names_the_remedy(self):
        before, path = os.environ.pop("SIMCCL_PROGRAM", None), os.environ["PATH"]
        try:
            os.environ["PATH"] = ""
            with self.assertRaises(simccl.Error) as e:
                simccl.program()
            self.assertIn("SIMCCL_PROGRAM", str(e.exception))
        finally:
            os.environ["PATH"] = path
            if before is not None:
                os.environ["SIMCCL_PROGRAM"] = before


class Notebook(unittest.TestCase):
    def test_every_cell_runs(self):
        book = json.loads((Path(__file__).parent.parent / "first.ipynb").read_text(encoding="utf-8"))
        names: dict = {}
        with tempfile.TemporaryDirectory() as folder:
            at = os.getcwd()
            os.chdir(folder)
            try:
                for i, cell in enumerate(c for c in book["cells"] if c["cell_type"] == "code"):
                    exec(compile("".join(cell["source"]), f"first.ipynb, cell {i + 1}", "exec"), names)
            finally:
                os.chdir(at)


if __name__ == "__main__":
    unittest.main()
