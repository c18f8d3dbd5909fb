# world.sh WORK TESTDATA STAGE SCRIPT ARG...: makes the world and runs SCRIPT in it. See inWorld.
set -eu
work=$1 testdata=$2 stage=$3 script=$4
shift 4
mount -t tmpfs -o mode=0755 world "$work"
root=$work/root
mkdir "$work/upper" "$work/work" "$root"
mount -t overlay world -o "lowerdir=/,upperdir=$work/upper,workdir=$work/work" "$root"
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
mount -t tmpfs -o mode=0755 run "$root/run"
mount -t tmpfs -o mode=1777 tmp "$root/tmp"
mkdir -p "$root/tests" "$root/stage" "$root/packaging"
mount --bind "$testdata/../../../packaging" "$root/packaging"
mount --bind "$testdata" "$root/tests"
mount --bind "$stage" "$root/stage"
ip link set lo up
# A machine that had Gozzard before must not decide the test.
rm -rf "$root/etc/gozzard" "$root/var/lib/gozzard" "$root/var/lib/gozzard-agent" "$root/usr/bin/gozzard"
exec chroot "$root" sh -c '. /tests/lib.sh; script=$1; shift; . "/tests/$script"; echo "$script: all steps passed"' sh "$script" "$@"
