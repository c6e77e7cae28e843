# Two soft HCAs on one machine, joined by a real (veth) wire: rxe0 on v0
# (10.99.1.1), rxe1 on v1 (10.99.1.2). Policy routing sends packets between
# the two addresses over the wire instead of the loopback.
ip link set lo up
ip link add v0 address 02:00:00:00:01:01 type veth peer name v1 address 02:00:00:00:01:02
for i in 0 1; do
  sysctl -qw net.ipv4.conf.v$i.accept_local=1 net.ipv4.conf.v$i.rp_filter=0 net.ipv6.conf.v$i.accept_dad=0 2>/dev/null
  ip link set v$i mtu "${MTU:-4500}" up
  ip addr add 10.99.1.$((i + 1))/24 dev v$i
done
sysctl -qw net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.all.arp_ignore=1
ip rule add pref 10 oif v0 to 10.99.1.2 lookup 101
ip route add 10.99.1.2 dev v0 table 101
ip rule add pref 11 oif v1 to 10.99.1.1 lookup 102
ip route add 10.99.1.1 dev v1 table 102
ip rule add pref 100 lookup local
ip rule del pref 0
ip neigh replace 10.99.1.2 lladdr 02:00:00:00:01:02 dev v0 nud permanent
ip neigh replace 10.99.1.1 lladdr 02:00:00:00:01:01 dev v1 nud permanent
rdma link add rxe0 type rxe netdev v0
rdma link add rxe1 type rxe netdev v1
