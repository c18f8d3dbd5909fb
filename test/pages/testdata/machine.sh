# machine.sh N: the first process of a machine. It shares the programs of the world, apart from Gozzard, and no folder that Gozzard or a service writes.
set -eu
for folder in /etc/gozzard /var/lib /srv /run /tmp /root; do
	mkdir -p $folder
	mount -t tmpfs -o mode=0755 machine $folder
done
chmod 1777 /tmp
mkdir -p /run/programs
mount --bind /usr/bin /run/programs
mount -t tmpfs -o mode=0755 machine /usr/bin
/run/programs/ln -s /run/programs/* /usr/bin/
rm -f /usr/bin/gozzard
ip link set lo up
: >/run/machine
while :; do sleep 1000 & wait $!; done
