//! Ranks on several hosts: a test's body runs on each, knows where it is, and reaches the others through the fabric.

use armci_core::job;
use tests::Ranks;
use tests::sample::everything;

#[test]
fn a_body_runs_on_every_host() {
    Ranks::new(3).hosts(2).run_bare(|| {
        let mut job = job::bootstrap().unwrap();
        let who = job.identity().clone();
        assert_eq!((who.size, who.nodes, who.nodes_here, who.node), (3, 2, 2, usize::from(who.rank > 0)));
        let network = std::fs::read_link("/proc/self/ns/net").unwrap();
        let all = job.all_gather(network.to_str().unwrap().as_bytes()).unwrap();
        assert!(all[0] != all[1] && all[1] == all[2]);
        job.goodbye().unwrap();
    });
}

#[test]
fn ranks_of_several_hosts_reach_each_other() {
    for (ranks, hosts) in [(2, 2), (4, 2), (3, 3)] {
        for progress in ["thread", "none"] {
            Ranks::new(ranks).hosts(hosts).env("ARMCI_PROGRESS", progress).run(everything);
        }
    }
}
