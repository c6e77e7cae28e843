#!/usr/bin/env bash
# run.sh CMD...: run CMD as root in a small VM with two soft-RoCE devices, rxe0
# and rxe1, on a wire. The host's / is the guest's root (read-only, changes go
# to memory), so what is built here runs there. CMD's exit status comes back; 124
# where LIMIT seconds are over, 125 where the guest does not come up.
# Needs Debian; installs what is missing with apt. CACHE holds kernel and
# initramfs between runs.
set -euo pipefail
cache=${CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/simccl-rxe}
mkdir -p "$cache"
here=$(dirname "$(readlink -f "$0")")
began=$(date +%s%N)
say() { echo "[rxe $((($(date +%s%N) - began) / 1000000)) ms] $*" >&2; }

set -E
trap 'say "set-up failed: line $LINENO"; exit 125' ERR

packages="qemu-system-x86 kmod cpio busybox-static iproute2 libibverbs1 ibverbs-providers"
# shellcheck disable=SC2086
if ! dpkg -s $packages >/dev/null 2>&1; then
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $packages >/dev/null
  say "packages installed"
fi
# The meta package names today's kernel; a pinned version would vanish.
kernel=$(apt-cache depends linux-image-amd64 | awk '/Depends:/{print $2}')
[ -n "$kernel" ] || { apt-get update -qq; kernel=$(apt-cache depends linux-image-amd64 | awk '/Depends:/{print $2}'); }
version=${kernel#linux-image-}
stamp=$(cat "$here/init.sh" "$here/wire.sh" | sha256sum | cut -c1-12)
image=$cache/$version-$stamp.img

build_image() {
  local t w n=100
  t=$(mktemp -d)
  (cd "$t" && apt-get download -qq "$kernel" 2>/dev/null)
  dpkg-deb --fsys-tarfile "$t/$kernel"*.deb | tar x -C "$t" --wildcards './boot/vmlinuz-*' './lib/modules/*/modules.*' \
    './lib/modules/*/kernel/drivers/virtio' './lib/modules/*/kernel/drivers/net/*.ko' \
    './lib/modules/*/kernel/drivers/infiniband/core' './lib/modules/*/kernel/drivers/infiniband/sw' \
    './lib/modules/*/kernel/net' './lib/modules/*/kernel/fs/9p' './lib/modules/*/kernel/fs/netfs' \
    './lib/modules/*/kernel/fs/fscache' './lib/modules/*/kernel/fs/overlayfs' './lib/modules/*/kernel/fs/configfs' \
    './lib/modules/*/kernel/crypto' './lib/modules/*/kernel/arch/x86/crypto'
  depmod -b "$t" "$version"
  w=$t/w
  mkdir -p "$w"/{bin,dev,proc,sys,host,m}
  cp /bin/busybox "$w/bin/"
  cp "$here/init.sh" "$w/init"
  cp "$here/wire.sh" "$w/wire.sh"
  chmod +x "$w/init"
  for m in virtio_pci 9pnet_virtio 9p overlay crc32_generic crc32-pclmul rdma_rxe ib_uverbs rdma_ucm sch_netem veth; do
    modprobe -d "$t" -S "$version" --show-depends "$m"
  done | awk '$1=="insmod" && !seen[$2]++ {print $2}' | while read -r f; do
    cp "$f" "$w/m/$n-$(basename "$f")"
    n=$((n + 1))
  done
  (cd "$w" && find . | cpio -o -H newc --quiet | gzip -1) >"$image.part"
  cp "$t/boot/vmlinuz-$version" "$cache/$version.vmlinuz"
  mv "$image.part" "$image"
  rm -rf "$t"
  say "initramfs of $version built"
}
[ -s "$image" ] && [ -s "$cache/$version.vmlinuz" ] || build_image

# Software emulation, unless the processor itself says that it can do better.
accel=tcg,thread=multi cpu=max
if grep -qE '\b(vmx|svm)\b' /proc/cpuinfo && [ -w /dev/kvm ]; then accel=kvm cpu=host; fi
trap - ERR
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
printf '%q ' "$@" >"$out/cmd"
pwd >"$out/cwd"
timeout "${LIMIT:-300}" qemu-system-x86_64 -machine q35 -accel $accel -cpu $cpu -smp 2 -m "${MEM:-1024}" \
  -nodefaults -no-user-config -display none -no-reboot -serial stdio \
  -kernel "$cache/$version.vmlinuz" -initrd "$image" -append "console=ttyS0 quiet panic=-1 out=$out" \
  -fsdev local,id=h,path=/,security_model=none,readonly=on,multidevs=remap -device virtio-9p-pci,fsdev=h,mount_tag=host \
  -fsdev local,id=o,path="$out",security_model=none -device virtio-9p-pci,fsdev=o,mount_tag=out </dev/null || true
say "guest ended ($accel)"
# 124: the guest ran out of time; 125: it did not come up.
missing=125
[ ! -e "$out/started" ] || missing=124
exit "$(cat "$out/rc" 2>/dev/null || echo $missing)"
