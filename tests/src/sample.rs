//! A sample of what ranks do with each other, each result checked: for jobs in which something else is odd, a fabric, a
//! line or a launcher. Collective; any number of ranks, on any nodes.

use armci_core::{GlobalPtr, Reduce, Strided, World};

/// Everybody does everything with everybody: contiguous, strided and accumulated transfers, messages, a counter, collective
/// operations, and data behind flags.
///
/// # Panics
/// If anything is refused, or comes out otherwise than it should.
pub fn everything(world: &World) {
    let (me, size) = (world.rank(), world.size());
    let handler = world.register(|delivery, reply| reply.set(&[&[7], delivery.payload].concat())).unwrap();
    let region = world.allocate(8 * 60_000).unwrap();
    let right = (me + 1) % size;
    // One distance after the other, so that nobody else writes where somebody reads.
    for (len, distance) in [0, 1, 100, 2_016, 2_017, 9_001, 50_000]
        .into_iter()
        .flat_map(|len| (1..size.min(4)).map(move |distance| (len, distance)))
    {
        let (to, from) = ((me + distance) % size, (me + size - distance) % size);
        let data: Vec<f64> = (0..len).map(|i| (me * 100_000 + i) as f64).collect();
        world.put(&data, region.at(to, 3)).unwrap();
        let mut got = vec![0.0; len];
        world.get(region.at(to, 3), &mut got).unwrap();
        assert_eq!(got, data, "put, then read back");
        world.barrier().unwrap();
        world.get(region.at(me, 3), &mut got).unwrap();
        assert!(
            got.iter().enumerate().all(|(i, found)| *found == (from * 100_000 + i) as f64),
            "as rank {from} put it"
        );
        world.barrier().unwrap();
    }
    // By short messages, by accesses, and by long messages.
    for (row, rows) in [(3, 12), (700, 12), (200, 90)] {
        let shape = Strided { counts: &[row, rows], local: &[row], remote: &[row + 50] };
        let data: Vec<f64> = (0..row * rows).map(|i| (me + i) as f64).collect();
        world.put_strided(&data, region.at(right, 5), &shape).unwrap();
        let mut got = vec![0.0; row * rows];
        world.get_strided(region.at(right, 5), &mut got, &shape).unwrap();
        assert_eq!(got, data);
        world.barrier().unwrap();
    }
    sums(world, region.at(0, 0), |rank| region.at(rank, 0));
    for len in [0, 50, 5_000] {
        let payload = vec![me as u8; len];
        assert_eq!(world.request(right, handler, &payload).unwrap(), [&[7], &payload[..]].concat());
    }
    // A hundred small puts under way, and a counter behind them.
    world.barrier().unwrap();
    world.put_value(0i64, region.at(me, 20_000)).unwrap();
    world.barrier().unwrap();
    for number in 0..100 {
        world.put_value((me * 1_000 + number) as i64, region.at(right, 21_000 + number)).unwrap();
    }
    (0..50).for_each(|_| world.add(region.at::<i64>(0, 20_000), 1).unwrap());
    world.fence_all().unwrap();
    world.barrier().unwrap();
    assert_eq!(world.get_value::<i64>(region.at(0, 20_000)).unwrap(), 50 * size as i64);
    for number in 0..100 {
        let found = world.get_value::<i64>(region.at(right, 21_000 + number)).unwrap();
        assert_eq!(found, (me * 1_000 + number) as i64);
    }
    world.barrier().unwrap();
    let flag = |rank| region.at::<i64>(rank, 59_000);
    world.put_value(0i64, flag(me)).unwrap();
    world.barrier().unwrap();
    for round in 1..=10i64 {
        // By remote access, by message, and both behind one flag; written anew only when its reader has seen it.
        world.put(&[round; 3_000], region.at(right, 100)).unwrap();
        world.accumulate(1i64, &[0; 40], region.at(right, 200)).unwrap();
        world.put_notify(&[round; 10], region.at(right, 5_000), flag(right), round).unwrap();
        world.wait_value(flag(me), round).unwrap();
        let mut found = [0i64; 3_000];
        world.get(region.at(me, 100), &mut found).unwrap();
        assert_eq!(found, [round; 3_000], "data behind a flag");
        let mut found = [0i64; 10];
        world.get(region.at(me, 5_000), &mut found).unwrap();
        assert_eq!(found, [round; 10]);
        world.barrier().unwrap();
    }
    world.free(region).unwrap();
}

/// What all add up at one place, and what collective operations bring.
fn sums(world: &World, first: GlobalPtr<f64>, at: impl Fn(usize) -> GlobalPtr<f64>) {
    let (me, size) = (world.rank(), world.size());
    world.put(&[0.0; 19_000], at(me)).unwrap();
    world.barrier().unwrap();
    for target in 0..size {
        world.accumulate(0.5, &[1.0; 5_000], at(target)).unwrap();
        // By long messages.
        world.accumulate(0.25, &[1.0; 19_000], at(target)).unwrap();
        drop(world.accumulate_nb(0.25, vec![1.0; 19_000], at(target)).unwrap().wait().unwrap());
    }
    world.barrier().unwrap();
    let mut sums = [0.0; 19_000];
    world.get(at((me + 1) % size), &mut sums).unwrap();
    let sum_at = |at| if at < 5_000 { size as f64 } else { 0.5 * size as f64 };
    assert!(sums.iter().enumerate().all(|(at, sum)| *sum == sum_at(at)));
    let mut sum = [me as i64; 3_000];
    world.all_reduce(&mut sum, Reduce::Sum).unwrap();
    assert_eq!(sum, [(size * (size - 1) / 2) as i64; 3_000]);
    let mut told = [if me == size - 1 { 17i32 } else { 0 }; 5];
    world.broadcast(size - 1, &mut told).unwrap();
    assert_eq!(told, [17; 5]);
    assert_eq!(world.get_value::<f64>(first).unwrap(), size as f64);
    world.barrier().unwrap();
}
