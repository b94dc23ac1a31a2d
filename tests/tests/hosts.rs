//! The harness over hosts: a test's body runs on ranks of several, and knows where it is.

use armci_core::job;
use tests::Ranks;

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
