#!/bin/busybox sh
# First process of the soft-RoCE guest: load modules, lay the host's root under
# a tmpfs overlay, set up the wire, run the command, say its exit status.
B=/bin/busybox
$B mount -t proc p /proc
$B mount -t sysfs s /sys
$B mount -t devtmpfs d /dev
for m in $($B ls /m | $B sort); do $B insmod "/m/$m" || echo "insmod $m failed"; done
nine="-t 9p -o trans=virtio,version=9p2000.L,msize=262144"
$B mount $nine,cache=loose,ro host /host || $B poweroff -f
$B mkdir /ov
$B mount -t tmpfs t /ov
$B mkdir /ov/u /ov/w /ov/r
$B mount -t overlay -o lowerdir=/host,upperdir=/ov/u,workdir=/ov/w o /ov/r
root=/ov/r
$B mount --rbind /dev $root/dev
$B mount -t proc p $root/proc
$B mount -t sysfs s $root/sys
$B mount -t tmpfs t $root/run
$B mkdir -p $root/dev/shm
$B mount -t tmpfs t $root/dev/shm
for word in $($B cat /proc/cmdline); do
  case $word in out=*) out=${word#out=} ;; esac
done
$B mkdir -p "$root$out"
$B mount $nine out "$root$out"
$B cp /wire.sh $root/run/wire.sh
$B cat >$root/run/go.sh <<X
export PATH=/usr/local/go/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root
ulimit -l unlimited
. /run/wire.sh
echo >$out/started
cd "\$(cat $out/cwd)"
eval "\$(cat $out/cmd)"
echo \$? >$out/rc
X
$B chroot $root /bin/bash /run/go.sh
$B sync
$B poweroff -f
