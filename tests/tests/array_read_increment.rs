//! Elements of arrays as counters.

use armci_core::Word;
use global_arrays::{Error, GlobalArray};
use ndarray::{Array2, Ix3};
use tests::{matrix, spread};

#[test]
fn each_number_is_drawn_once() {
    matrix(|world| {
        let mut random = fastrand::Rng::with_seed(31);
        let array = spread::array::<i64, Ix3>(world, "counters", Ix3(3, 4, 2), &mut random);
        let draws = 60;
        for index in [[0, 0, 0], [2, 3, 1]] {
            let drawn: Vec<_> = (0..draws).map(|_| array.read_increment(index, 1).unwrap()).collect();
            let mut all = world.all_gather(&drawn).unwrap();
            all.sort_unstable();
            assert_eq!(all, (0..draws * world.size() as i64).collect::<Vec<_>>());
        }
        array.sync().unwrap();
        assert_eq!(array.get(..).unwrap().sum(), 2 * draws * world.size() as i64);
        assert!(matches!(array.read_increment([3, 0, 0], 1), Err(Error::OutOfBounds { .. })));
        array.sync().unwrap();
        array.destroy().unwrap();
    });
}

#[test]
fn words_of_every_kind_are_swapped() {
    fn of<T: Word + PartialEq + std::fmt::Debug>(world: &armci_core::World, values: [T; 4]) {
        let [a, b, c, sum] = values;
        let array = GlobalArray::<T>::builder(world, "words", [5, 3]).filled(a).create().unwrap();
        if world.rank() + 1 == world.size() {
            assert_eq!(array.swap_element([0, 2], b).unwrap(), a);
            assert_eq!(array.compare_swap_element([0, 2], a, c).unwrap(), b);
            assert_eq!(array.compare_swap_element([0, 2], b, c).unwrap(), b);
            assert_eq!(array.read_increment([0, 2], b).unwrap(), c);
        }
        array.sync().unwrap();
        let mut plain = Array2::from_elem((5, 3), a);
        plain[[0, 2]] = sum;
        assert_eq!(array.get(..).unwrap(), plain);
        array.sync().unwrap();
        array.destroy().unwrap();
    }
    matrix(|world| {
        of(world, [1i32, -5, 7, 2]);
        of(world, [1u32, 5, u32::MAX, 4]);
        of(world, [1i64, -5 << 40, 7, (-5 << 40) + 7]);
        of(world, [1u64, 5, u64::MAX, 4]);
    });
}
