# world.sh WORK TESTDATA STAGE SCRIPT: runs SCRIPT as root of a machine of its own: an overlay on the files of this machine, with its own mounts,
# processes and network. Nothing that it writes reaches the machine, and its end ends all its processes.
set -eu
work=$1 testdata=$2 stage=$3 script=$4
source=$testdata/../../..
mount -t tmpfs -o mode=0755 world "$work"
root=$work/root
mkdir "$work/upper" "$work/work" "$work/source" "$work/source-work" "$root"
mount -t overlay world -o "lowerdir=/,upperdir=$work/upper,workdir=$work/work" "$root"
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
mount -t tmpfs -o mode=1777 shm "$root/dev/shm"
mount -t tmpfs -o mode=0755 run "$root/run"
mount -t tmpfs -o mode=1777 tmp "$root/tmp"
mkdir -p "$root/tests" "$root/stage" "$root/src"
mount -t overlay source -o "lowerdir=$source,upperdir=$work/source,workdir=$work/source-work" "$root/src"
mount --bind "$testdata" "$root/tests"
mount --bind "$stage" "$root/stage"
ip link set lo up
ip address add 10.0.0.1/24 dev lo
# A machine that had Gozzard before must not decide the test.
rm -rf "$root/etc/gozzard" "$root/var/lib/gozzard" "$root/var/lib/gozzard-agent" "$root/usr/bin/gozzard" "$root/src/data" "$root/src/bin"
exec chroot "$root" bash -c '. /tests/lib.sh; . "/stage/$1"; echo "$1: all commands passed"' bash "$script"
