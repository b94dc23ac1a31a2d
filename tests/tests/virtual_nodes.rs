//! Virtual nodes: ranks know where they are, neighbours reach each other, and whatever would cross nodes is refused
//! by name, on every rank, without hanging.

use armci_core::{Error, GlobalPtr, Mutexes, Reduce, Result, Segments, SharedCounter, Strided, World};
use global_arrays::GlobalArray;
use tests::Ranks;

/// (ranks, nodes, the node of each rank).
const JOBS: [(usize, usize, &[usize]); 4] =
    [(2, 2, &[0, 1]), (4, 2, &[0, 0, 1, 1]), (3, 3, &[0, 1, 2]), (5, 2, &[0, 0, 1, 1, 1])];

/// Holds the error to naming this node, that of `rank`, and `rank`.
fn refused<T: std::fmt::Debug>(what: &str, nodes: &[usize], me: usize, other: usize, result: Result<T>) {
    match result {
        Err(Error::OtherNode { rank, node, mine }) => {
            assert_eq!((rank, node, mine), (other, nodes[other], nodes[me]), "{what}");
        }
        result => panic!("{what}: {result:?}"),
    }
}

/// Runs `body` in every job, with and without progress thread. It is told the node of each rank.
fn in_each_job(body: impl Fn(&World, &[usize])) {
    for (ranks, nodes, of_rank) in JOBS {
        for progress in ["thread", "none"] {
            Ranks::new(ranks).nodes(nodes).env("ARMCI_PROGRESS", progress).run(|world| body(world, of_rank));
        }
    }
}

#[test]
fn ranks_join_leave_and_know_how_many_they_are() {
    in_each_job(|world, of_rank| {
        assert_eq!((world.size(), world.nodes()), (of_rank.len(), of_rank[of_rank.len() - 1] + 1));
        // Each control block is granted by the ledger of its node.
        let neighbours = of_rank.iter().filter(|node| **node == of_rank[world.rank()]).count() as u64;
        assert!(world.statistics().node_memory.is_multiple_of(neighbours));
        assert!((1 << 20..2 << 20).contains(&(world.statistics().node_memory / neighbours)));
    });
}

#[test]
fn what_all_ranks_do_together_is_refused_on_every_rank() {
    in_each_job(|world, of_rank| {
        let me = world.rank();
        let first_elsewhere = of_rank.iter().position(|node| *node != of_rank[me]).unwrap();
        let refused = |what, result: Result<()>| refused(what, of_rank, me, first_elsewhere, result);
        refused("barrier", world.barrier());
        refused("synchronize", world.synchronize());
        refused("broadcast", world.broadcast(0, &mut [me]));
        refused("all_reduce", world.all_reduce(&mut [1.0], Reduce::Sum));
        refused("all_gather", world.all_gather(&[me]).map(drop));
        refused("allocate", world.allocate(64).map(drop));
        refused("Mutexes::create", Mutexes::create(world, 1).map(drop));
        refused("SharedCounter::create", SharedCounter::create(world).map(drop));
        match GlobalArray::<f64>::create(world, "density", [4, 4]) {
            Err(global_arrays::Error::Runtime { source, .. }) => refused("GlobalArray::create", Err(source)),
            other => panic!("GlobalArray::create: {other:?}"),
        }
        // What was put to neighbours can be completed; there is nothing else.
        world.fence_all().unwrap();
    });
}

#[test]
fn what_would_cross_nodes_is_refused() {
    for (ranks, nodes, of_rank) in JOBS {
        for protocol in ["rma", "am"] {
            Ranks::new(ranks).nodes(nodes).env("ARMCI_PROTOCOL", protocol).run(|world| {
                // The ranks of this node have a region, of which pointers to other nodes are made up.
                let mine = of_rank[world.rank()];
                let here: Vec<usize> = (0..ranks).filter(|rank| of_rank[*rank] == mine).collect();
                let team = world.create_team(&here).unwrap();
                let region = team.allocate(4096).unwrap();
                let me = world.rank();
                let handler = world.register(|_, _| Ok(())).unwrap();
                for other in (0..ranks).filter(|other| of_rank[*other] != of_rank[me]) {
                    let refused = |what, result: Result<()>| refused(what, of_rank, me, other, result);
                    let place: GlobalPtr<f64> = region.at(0, 0).on(other);
                    let (word, mut row) = (place.cast::<i64>(), [0.0; 4]);
                    refused("put", world.put(&row, place));
                    refused("get", world.get(place, &mut row));
                    refused("accumulate", world.accumulate(2.0, &row, place));
                    refused("put_value", world.put_value(1.0, place));
                    refused("get_value", world.get_value(place).map(drop));
                    let shape = Strided { counts: &[2, 2], local: &[2], remote: &[8] };
                    refused("put_strided", world.put_strided(&row, place, &shape));
                    refused("get_strided", world.get_strided(place, &mut row, &shape));
                    refused("accumulate_strided", world.accumulate_strided(2.0, &row, place, &shape));
                    let segments = Segments { count: 2, local: &[0, 2], remote: &[place, place.add(8)] };
                    let vector = |what, result| match result {
                        Err(Error::Segment { segment: 0, error }) => refused(what, Err(*error)),
                        result => panic!("{what}: {result:?}"),
                    };
                    vector("put_vector", world.put_vector(&row, &segments));
                    vector("get_vector", world.get_vector(&mut row, &segments));
                    vector("accumulate_vector", world.accumulate_vector(2.0, &row, &segments));
                    refused("fetch_add", world.fetch_add(word, 1).map(drop));
                    refused("swap", world.swap(word, 1).map(drop));
                    refused("compare_swap", world.compare_swap(word, 0, 1).map(drop));
                    refused("notify", world.notify(word, 1));
                    refused("put_notify", world.put_notify(&row, place, word, 1));
                    refused("wait_value", world.wait_value(word, 1));
                    refused("fence", world.fence(other));
                    refused("send", world.send(other, handler, b"?"));
                    refused("request", world.request(other, handler, b"?").map(drop));
                    refused("address_of", world.address_of(place).map(drop));
                    refused("create_team", world.create_team(&[me, other]).map(drop));
                    refused("locate", world.locate(other, &raw const row as *const u8).map(drop));
                }
                // Neighbours are reached; beyond the job there is nobody.
                let right = (team.rank() + 1) % team.size();
                world.put_value(me as i64, region.at(right, 5)).unwrap();
                team.barrier().unwrap();
                let left = team.world_rank((team.rank() + team.size() - 1) % team.size()).unwrap();
                assert_eq!(world.get_value::<i64>(region.at(team.rank(), 5)).unwrap(), left as i64);
                assert!(matches!(world.put_value(0u8, region.at(0, 0).on(ranks)), Err(Error::Rank { .. })));
                assert!(matches!(world.fence(ranks), Err(Error::Rank { .. })));
                team.barrier().unwrap();
                world.free(region).unwrap();
                team.free().unwrap();
            });
        }
    }
}

#[test]
fn neighbours_reach_each_other_and_know_who_asked() {
    in_each_job(|world, of_rank| {
        let me = world.rank();
        let handler = world
            .register(move |delivery, reply| {
                reply.set(format!("{} from {} at {me}", delivery.payload.len(), delivery.source).as_bytes())
            })
            .unwrap();
        for other in (0..world.size()).filter(|other| of_rank[*other] == of_rank[me]) {
            // Short and staged.
            for len in [3, 5000] {
                let answer = loop {
                    match world.request(other, handler, &vec![7; len]) {
                        // It has not registered yet, and there is no barrier to wait at.
                        Err(Error::Refused { rank, .. }) => assert_eq!(rank, other),
                        answer => break answer.unwrap(),
                    }
                };
                assert_eq!(String::from_utf8(answer).unwrap(), format!("{len} from {me} at {other}"));
            }
            world.send(other, handler, b"and one for the fence").unwrap();
            world.fence(other).unwrap();
        }
    });
}

#[test]
fn a_rank_that_dies_ends_the_ranks_of_all_nodes() {
    let outcome = Ranks::new(3).nodes(3).expect_failure(|world| assert_ne!(world.rank(), 1, "unhappy"));
    assert_eq!(outcome.failed.unwrap().rank, 1);
}
