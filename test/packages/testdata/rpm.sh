mkdir -p /tmp/rpmdb
rpm_() { rpm --dbpath /tmp/rpmdb --nodeps "$@" >/tmp/rpm.log 2>&1 || fail "rpm $1"; }
install_old() { rpm_ -U --oldpackage --replacepkgs /stage/old/*.rpm; }
install_new() { rpm_ -U --replacepkgs /stage/new/*.rpm; }
remove() { rpm_ -e gozzard; }
. /tests/fleet.sh
[ -e /etc/gozzard/server.yaml ] || [ -e /etc/gozzard/server.yaml.rpmsave ] || fail "remove took a changed setting"
