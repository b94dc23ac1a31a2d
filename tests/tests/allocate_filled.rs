//! Regions that begin with a value in every element, whatever their memory held before.

use tests::matrix;

#[test]
fn every_part_is_full_when_the_call_returns() {
    matrix(|world| {
        let team = world.split(Some((world.rank() % 2) as i64), 0).unwrap().unwrap();
        // Equal parts, unequal ones, parts that differ much, none; each in memory that was used before.
        for unequal in [0, 3, 50_000] {
            for value in [0.0, 2.5, 0.0] {
                let count = |rank: usize| 100 + unequal * (rank % 2);
                let region = world.allocate_filled(count(world.rank()), value).unwrap();
                for rank in 0..world.size() {
                    let mut found = vec![-1.0; count(rank)];
                    world.get(region.at(rank, 0), &mut found).unwrap();
                    assert!(found.iter().all(|found: &f64| *found == value));
                }
                world.barrier().unwrap();
                world.put(&vec![7.0; count(world.rank())], region.at(world.rank(), 0)).unwrap();
                world.free(region).unwrap();
            }
        }
        let region = team.allocate_filled(team.rank(), [1u8, 2, 3]).unwrap();
        for member in 1..team.size() {
            assert_eq!(world.get_value::<[u8; 3]>(region.at(member, member - 1)).unwrap(), [1, 2, 3]);
        }
        world.free(region).unwrap();
        let refused = world.allocate_filled(usize::MAX, 1.0);
        assert!(refused.is_err());
        team.free().unwrap();
    });
}
