//! Ranks of different nodes: what goes between them does what it does on a node.

use armci_core::{Reduce, Strided, World};
use tests::Ranks;

/// Runs `body` on virtual nodes: two ranks apart, and four on two nodes.
fn in_each_job(body: impl Fn(&World)) {
    for (ranks, nodes) in [(2, 2), (3, 3), (4, 2)] {
        for protocol in ["rma", "am"] {
            for progress in ["thread", "none"] {
                Ranks::new(ranks)
                    .nodes(nodes)
                    .env("ARMCI_PROTOCOL", protocol)
                    .env("ARMCI_PROGRESS", progress)
                    .run(&body);
            }
        }
    }
}

#[test]
fn messages_cross_nodes() {
    in_each_job(|world| {
        let handler =
            world.register(|delivery, reply| reply.set(&[&[delivery.source as u8], delivery.payload].concat()));
        let handler = handler.unwrap();
        world.barrier().unwrap();
        for len in [0, 1, 100, 1000, 16_000] {
            let payload: Vec<u8> = (0..len).map(|byte| byte as u8).collect();
            for target in 0..world.size() {
                let reply = world.request(target, handler, &payload).unwrap();
                assert_eq!(reply[0] as usize, world.rank());
                assert_eq!(reply[1..], payload);
            }
        }
    });
}

#[test]
fn collectives_cross_nodes() {
    in_each_job(|world| {
        for round in 0..20u64 {
            world.barrier().unwrap();
            let all = world.all_gather(&[world.rank() as u64 + round]).unwrap();
            assert_eq!(all, (0..world.size() as u64).map(|rank| rank + round).collect::<Vec<_>>());
        }
        let mut many = vec![world.rank() as f64; 10_000];
        world.all_reduce(&mut many, Reduce::Sum).unwrap();
        let sum = (world.size() * (world.size() - 1) / 2) as f64;
        assert!(many.iter().all(|value| *value == sum));
        let mut told = vec![world.rank() as u32; 9_000];
        for root in 0..world.size() {
            told.fill(world.rank() as u32);
            world.broadcast(root, &mut told).unwrap();
            assert!(told.iter().all(|value| *value == root as u32));
        }
        for _ in 0..5 {
            let mut arrival = world.begin_barrier().unwrap();
            while !arrival.test() {}
            world.begin_barrier().unwrap().wait().unwrap();
        }
    });
}

#[test]
fn transfers_cross_nodes() {
    in_each_job(|world| {
        let (me, size) = (world.rank(), world.size());
        let region = world.allocate(8 * 100_000).unwrap();
        for len in [1, 7, 100, 2_016, 2_017, 50_000] {
            let target = (me + 1) % size;
            let data: Vec<f64> = (0..len).map(|i| (me * 1_000_000 + i) as f64).collect();
            world.put(&data, region.at(target, 3)).unwrap();
            world.barrier().unwrap();
            let source = (me + size - 1) % size;
            let mut got = vec![0.0; len];
            world.get(region.at(me, 3), &mut got).unwrap();
            let expected: Vec<f64> = (0..len).map(|i| (source * 1_000_000 + i) as f64).collect();
            assert_eq!(got, expected, "own part");
            world.get(region.at(target, 3), &mut got).unwrap();
            assert_eq!(got, data, "put, then read back");
            world.barrier().unwrap();
        }
        // Everybody adds to everybody.
        world.put(&vec![0.0; 10_000], region.at(me, 0)).unwrap();
        world.barrier().unwrap();
        let ones = vec![1.0; 10_000];
        (0..size).for_each(|target| world.accumulate(0.5, &ones, region.at(target, 0)).unwrap());
        world.barrier().unwrap();
        let mut sums = vec![0.0; 10_000];
        for target in 0..size {
            world.get(region.at(target, 0), &mut sums).unwrap();
            assert!(sums.iter().all(|sum| *sum == 0.5 * size as f64));
        }
        world.barrier().unwrap();
        // Short rows and long ones.
        for row in [2, 1_000] {
            let shape = Strided { counts: &[row, 20], local: &[row], remote: &[row + 100] };
            let data: Vec<f64> = (0..row * 20).map(|i| (me + i) as f64).collect();
            let target = (me + 1) % size;
            world.put_strided(&data, region.at(target, 5), &shape).unwrap();
            let mut got = vec![0.0; row * 20];
            world.get_strided(region.at(target, 5), &mut got, &shape).unwrap();
            assert_eq!(got, data);
            world.barrier().unwrap();
        }
        // One counter for all.
        world.put_value(0i64, region.at(0, 0)).unwrap();
        world.barrier().unwrap();
        (0..100).for_each(|_| world.add(region.at::<i64>(0, 0), 1).unwrap());
        world.barrier().unwrap();
        assert_eq!(world.get_value::<i64>(region.at(0, 0)).unwrap(), 100 * size as i64);
        world.barrier().unwrap();
        world.free(region).unwrap();
    });
}
