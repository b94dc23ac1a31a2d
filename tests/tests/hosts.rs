//! Ranks on several hosts: a test's body runs on each, knows where it is, and reaches the others through the fabric.

use armci_core::{Reduce, World, job};
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

/// Every kind of operation with everybody.
fn everything(world: &World) {
    let (me, size) = (world.rank(), world.size());
    let region = world.allocate(8 * 100_000).unwrap();
    for len in [1, 1_000, 50_000] {
        let data: Vec<f64> = (0..len).map(|i| (me * 1_000_000 + i) as f64).collect();
        for distance in 1..size {
            world.put(&data, region.at((me + distance) % size, 0)).unwrap();
            world.barrier().unwrap();
            let source = (me + size - distance) % size;
            let mut got = vec![0.0; len];
            world.get(region.at(me, 0), &mut got).unwrap();
            assert!(got.iter().enumerate().all(|(i, value)| *value == (source * 1_000_000 + i) as f64));
            world.get(region.at((me + distance) % size, 0), &mut got).unwrap();
            assert_eq!(got, data);
            world.barrier().unwrap();
        }
    }
    world.put(&vec![0.0; 5_000], region.at(me, 0)).unwrap();
    world.barrier().unwrap();
    (0..size).for_each(|target| world.accumulate(2.0, &vec![1.0; 5_000], region.at(target, 0)).unwrap());
    world.barrier().unwrap();
    let mut sums = vec![0.0; 5_000];
    world.get(region.at(me, 0), &mut sums).unwrap();
    assert!(sums.iter().all(|sum| *sum == 2.0 * size as f64));
    world.barrier().unwrap();
    world.put_value(0i64, region.at(0, 0)).unwrap();
    world.barrier().unwrap();
    (0..50).for_each(|_| world.add(region.at::<i64>(0, 0), 1).unwrap());
    world.barrier().unwrap();
    assert_eq!(world.get_value::<i64>(region.at(0, 0)).unwrap(), 50 * size as i64);
    let mut sum = [me as i64; 3_000];
    world.all_reduce(&mut sum, Reduce::Sum).unwrap();
    assert!(sum.iter().all(|sum| *sum == (size * (size - 1) / 2) as i64));
    world.free(region).unwrap();
}

#[test]
fn ranks_of_several_hosts_reach_each_other() {
    for (ranks, hosts) in [(2, 2), (4, 2), (3, 3)] {
        for progress in ["thread", "none"] {
            Ranks::new(ranks).hosts(hosts).env("ARMCI_PROGRESS", progress).run(everything);
        }
    }
}
