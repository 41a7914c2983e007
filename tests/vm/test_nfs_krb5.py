# SPDX-License-Identifier: GPL-2.0-only
"""krb5, krb5i and krb5p over our transport at both ends, with a KDC of the test's own."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from nfsrig import EXPORT_OPTIONS, PORT, Mount, NfsServer, agree, unload, work
from railvm import Cluster
from test_nfs_client import LONG_CALLS, READ_SEGS, REPLY_SEGS, WRITE_SEGS, word

Hosts = Callable[..., Cluster]

REALM = "RAIL.TEST"
ENV = {"KRB5_CONFIG": "/run/krb5.conf", "KRB5_KDC_PROFILE": "/run/kdc.conf"}

KRB5_CONF = """
[libdefaults]
    default_realm = {realm}
    dns_lookup_kdc = false
    dns_lookup_realm = false
    dns_canonicalize_hostname = false
    rdns = false
[realms]
    {realm} = {{
        kdc = {kdc}:88
    }}
"""

KDC_CONF = """
[realms]
    {realm} = {{
        database_name = /run/kdc/principal
        key_stash_file = /run/kdc/stash
        supported_enctypes = aes256-cts:normal aes128-cts:normal
    }}
[logging]
    kdc = FILE:/run/kdc/log
"""

MAKE_REALM = """
set -e
mkdir -p /run/kdc
kdb5_util create -r {realm} -s -P secret >/run/kdc/made 2>&1
for name in nfs/b-link0 nfs/a; do
    kadmin.local -r {realm} -q "addprinc -randkey $name"
done
kadmin.local -r {realm} -q "ktadd -k /run/b.keytab nfs/b-link0"
kadmin.local -r {realm} -q "ktadd -k /run/a.keytab nfs/a"
"""


@pytest.mark.soak
@pytest.mark.timeout(600)
def test_krb5(hosts: Hosts) -> None:
    """Nothing may be taken out of a message that is signed or sealed: long ones travel whole."""
    # Debian's 6.1.192 has no krb5p, by TCP either: its server takes all that is sealed for garbage.
    kerberos(hosts(2), ("krb5", "krb5i"))


@pytest.mark.soak
@pytest.mark.timeout(600)
def test_krb5p(hosts: Hosts) -> None:
    """All three, with a kernel that has all three."""
    kerberos(hosts(2, kernel="stock-6.12"), ("krb5", "krb5i", "krb5p"))


def kerberos(cluster: Cluster, flavors: Sequence[str]) -> None:
    """What is written with each flavor is what is there."""
    a, b = cluster
    a.modprobe("nfs")
    for host in (a, b):
        host.modprobe_rail("rpcrdma")
        host.run("modprobe -a auth_rpcgss rpcsec_gss_krb5")
        host.put("/run/krb5.conf", KRB5_CONF.format(realm=REALM, kdc=b.addr()))
    b.put("/run/kdc.conf", KDC_CONF.format(realm=REALM))
    b.run(MAKE_REALM.format(realm=REALM), env=ENV, timeout=100)
    a.put("/run/a.keytab", b.get("/run/a.keytab"))
    a.run(f"grep -qw a /etc/hosts || echo {a.addr()} a >>/etc/hosts; hostname a")

    # rpc.gssd knows only TCP to set up a context by.
    server = NfsServer(b, tcp=True, options=EXPORT_OPTIONS + ",sec=krb5:krb5i:krb5p")
    server.start()
    b.run(["chmod", "777", server.export])
    daemons = [b.start(["krb5kdc", "-n", "-r", REALM], env=ENV),
               b.start(["rpc.svcgssd", "-f", "-n", "-vv"], env={**ENV, "KRB5_KTNAME": "/run/b.keytab"})]
    a.run("mkdir -p /run/rpc_pipefs; mountpoint -q /run/rpc_pipefs || "
          "mount -t rpc_pipefs sunrpc /run/rpc_pipefs")
    daemons.append(a.start(["rpc.gssd", "-f", "-vv", "-k", "/run/a.keytab"], env=ENV))

    a.run(["mkdir", "-p", "/mnt/nfs"])
    try:
        for seed, flavor in enumerate(flavors):
            # If that fails it is not our doing.
            a.run(["mount", "-t", "nfs", "-o", f"proto=tcp,vers=4.2,sec={flavor}",
                   "b-link0:/", "/mnt/nfs"], timeout=100)
            a.run(["umount", "/mnt/nfs"])
            a.run(["mount", "-t", "nfs", "-o", f"proto=rdma,port={PORT},vers=4.2,sec={flavor}",
                   "b-link0:/", "/mnt/nfs"], timeout=100)
            mount = Mount(a, "/mnt/nfs")
            agree(b, work(a, mount.where, str(seed)))
            whole = flavor != "krb5"
            assert bool(word(mount, LONG_CALLS)) == whole and word(mount, REPLY_SEGS)
            assert word(mount, READ_SEGS) and bool(word(mount, WRITE_SEGS)) != whole
            mount.umount()
    finally:
        # Shown when the test fails.
        for daemon in daemons:
            daemon.kill()
            print(daemon.stderr)
        print(b.run("cat /run/kdc/log", check=False).stdout)

    a.run(["umount", "/run/rpc_pipefs"])
    server.stop()
    b.run(["rmmod", "nfsd"], timeout=60)
    unload(a, b)
