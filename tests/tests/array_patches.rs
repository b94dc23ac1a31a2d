//! Patches of distributed arrays against the same operations on a plain array, for every distribution.

use armci_core::World;
use global_arrays::{Error, GlobalArray, Patch};
use ndarray::{Array, Array2, ArrayD, ArrayView2, Dimension, Ix1, Ix2, Ix3, Ix4, IxDyn, SliceInfo, SliceInfoElem, s};
use tests::{for_each, matrix, spread};

/// Ranks take turns in writing to, and adding to, random sections of an array; all compare it with a plain one.
fn agrees<D: Dimension>(world: &World, dims: usize, longest: usize, random: &mut fastrand::Rng) {
    let shape = spread::shape::<D>(dims, longest, random);
    let array = spread::array::<f64, D>(world, "a", shape.clone(), random);
    let mut plain = ArrayD::<f64>::zeros(shape.slice());
    for turn in 0..8 {
        let section = section(shape.slice(), random);
        let at = SliceInfo::<_, D, D>::try_from(&section[..]).unwrap();
        let acts = random.usize(..world.size()) == world.rank();
        let mut place = plain.slice_mut(&section[..]);
        let buffer = Array::from_shape_fn(place.raw_dim(), |_| f64::from(random.i32(-1000..1000)));
        let typed = buffer.view().into_dimensionality::<D>().unwrap();
        if turn % 2 == 0 {
            place.assign(&buffer);
            if acts {
                array.put(at, typed).unwrap();
            }
        } else {
            place.scaled_add(-0.5, &buffer);
            if acts {
                array.accumulate(at, -0.5, typed).unwrap();
            }
        }
        array.sync().unwrap();
        let all = array.get(..).unwrap().into_dyn();
        assert_eq!(all, plain, "{:?} after {section:?}", array.distribution());
        let read = self::section(shape.slice(), random);
        let found = array.get(SliceInfo::<_, D, D>::try_from(&read[..]).unwrap()).unwrap();
        assert_eq!(found.into_dyn(), plain.slice(&read[..]));
        let patch = spread::patch(shape.slice(), random);
        assert_eq!(array.get(&patch).unwrap().len(), patch.len());
        array.sync().unwrap();
    }
    array.destroy().unwrap();
}

/// A section of an array of this shape: ranges, some with steps, some backwards.
fn section(shape: &[usize], random: &mut fastrand::Rng) -> Vec<SliceInfoElem> {
    let elements = shape.iter().map(|len| {
        let (a, b) = (random.usize(..=*len) as isize, random.usize(..=*len) as isize);
        let step = match random.usize(..6) {
            0 => 2,
            1 => -1,
            2 => -3,
            _ => 1,
        };
        SliceInfoElem::Slice { start: a.min(b), end: Some(a.max(b)), step }
    });
    elements.collect()
}

#[test]
fn sections_across_owners_agree_with_a_plain_array() {
    matrix(|world| {
        let mut random = fastrand::Rng::with_seed(5);
        for _ in 0..4 {
            agrees::<Ix1>(world, 1, 60, &mut random);
            agrees::<Ix2>(world, 2, 40, &mut random);
            agrees::<Ix3>(world, 3, 12, &mut random);
            agrees::<Ix4>(world, 4, 7, &mut random);
        }
        for _ in 0..10 {
            agrees::<Ix2>(world, 2, 20, &mut random);
        }
        for dims in 1..=7 {
            agrees::<IxDyn>(world, dims, 4, &mut random);
        }
    });
}

#[test]
fn single_indices_take_an_axis_away() {
    for_each(1..=5, |world| {
        let mut random = fastrand::Rng::with_seed(world.size() as u64);
        let plain = Array::from_shape_fn((6, 7, 5), |(i, j, k)| (i * 100 + j * 10 + k) as i64);
        let array = spread::array::<i64, Ix3>(world, "cube", plain.raw_dim(), &mut random);
        if world.rank() == 0 {
            array.put(.., &plain).unwrap();
        }
        array.sync().unwrap();
        assert_eq!(array.get(s![2, .., -1]).unwrap(), plain.slice(s![2, .., -1]));
        assert_eq!(array.get(s![.., 6, 1..;-2]).unwrap(), plain.slice(s![.., 6, 1..;-2]));
        let mut column = Array2::zeros((9, 6));
        array.get_into(s![.., 3, 2], column.row_mut(4)).unwrap();
        assert_eq!(column.row(4), plain.slice(s![.., 3, 2]));
        array.sync().unwrap();
        if world.rank() + 1 == world.size() {
            array.put(s![0, 0, ..], &Array::from_elem(5, -1)).unwrap();
            array.put_element([5, 6, 4], -7).unwrap();
        }
        array.sync().unwrap();
        assert_eq!(array.get(s![0, 0, ..]).unwrap(), Array::from_elem(5, -1));
        assert_eq!(array.get_element([5, 6, 4]).unwrap(), -7);
        assert!(matches!(array.get_element([5, 7, 4]), Err(Error::OutOfBounds { .. })));
        array.destroy().unwrap();
    });
}

#[test]
fn arrays_live_on_teams() {
    matrix(|world| {
        let team = world.split(Some((world.rank() % 2) as i64), -(world.rank() as i64)).unwrap().unwrap();
        let array = GlobalArray::<f64>::create(&team, "of a team", [9, 4]).unwrap();
        array.accumulate(.., 1.0, &Array2::ones((9, 4))).unwrap();
        array.sync().unwrap();
        assert_eq!(array.get(..).unwrap(), Array2::from_elem((9, 4), team.size() as f64));
        assert_eq!(array.group().size(), team.size());
        array.destroy().unwrap();
        team.free().unwrap();
    });
}

#[test]
fn any_layout_of_view_is_taken() {
    matrix(|world| {
        let array = GlobalArray::<i64>::create(world, "views", [12, 10]).unwrap();
        let big = Array2::from_shape_fn((40, 40), |(row, col)| (row * 100 + col) as i64);
        let first_row = big.slice(s![0..1, 4..14]);
        let views: [ArrayView2<'_, i64>; 5] = [
            big.slice(s![3..15, 4..14]),
            big.slice(s![3..27;2, 4..34;3]),
            big.slice(s![3..15;-1, 4..14]),
            big.t().slice_move(s![3..15, 4..14]),
            first_row.broadcast((12, 10)).unwrap(),
        ];
        for view in views {
            if world.rank() == 0 {
                array.put([0..12, 0..10], view).unwrap();
            }
            array.sync().unwrap();
            let mut target = Array2::<i64>::zeros((50, 50));
            array.get_into([0..12, 0..10], target.slice_mut(s![2..14, 5..15])).unwrap();
            assert_eq!(target.slice(s![2..14, 5..15]), view);
            assert_eq!(target.sum(), view.sum(), "nothing beside the patch was written");
            array.get_into(s![..;-1, ..], target.slice_mut(s![2..14;-1, 5..15])).unwrap();
            assert_eq!(target.slice(s![2..14, 5..15]), view);
            let mut columns = Array2::<i64>::zeros((50, 50));
            let rows_that_are_columns = columns.view_mut().reversed_axes().slice_move(s![2..14, 5..15]);
            array.get_into([0..12, 0..10], rows_that_are_columns).unwrap();
            assert_eq!(columns.t().slice(s![2..14, 5..15]), view);
            let mut backwards = Array2::<i64>::zeros((12, 10));
            array.get_into(.., backwards.slice_mut(s![.., ..;-1])).unwrap();
            assert_eq!(backwards.slice(s![.., ..;-1]), view);
            array.sync().unwrap();
        }
        array.destroy().unwrap();
    });
}

#[test]
fn every_element_has_one_owner_and_lies_in_its_block() {
    matrix(|world| {
        for shape in [[5, 3], [2, 1], [100, 1], [0, 4]] {
            let array = GlobalArray::<f64>::builder(world, "blocks", shape).min_block(&[2, 1]).create().unwrap();
            let mine = array.distribution().block_on(world.rank()).unwrap();
            let value = world.rank() as f64 + 1.0;
            if !mine.is_empty() {
                // SAFETY: OWN-BLOCK: nobody touches the array between the two syncs but its owners.
                #[allow(unsafe_code)]
                let mut block = unsafe { array.local_view_mut() }.unwrap();
                assert_eq!(block.shape(), &mine.shape()[..]);
                block.fill(value);
            }
            array.sync().unwrap();
            for ((row, col), found) in array.get([0..shape[0], 0..shape[1]]).unwrap().indexed_iter() {
                assert_eq!(*found, array.distribution().owner(&[row, col]).unwrap() as f64 + 1.0);
            }
            assert_eq!(array.distribution().owner(&[shape[0], 0]), None);
            array.destroy().unwrap();
        }
    });
}

#[test]
fn bad_patches_are_errors_that_name_array_patch_and_rank() {
    matrix(|world| {
        let array = GlobalArray::<f64>::create(world, "fock", [4, 4]).unwrap();
        let outside = array.get([2..5, 0..1]).unwrap_err().to_string();
        let rank = format!("rank {}", world.rank());
        for part in ["'fock'", "2..5", "[4, 4]", &rank] {
            assert!(outside.contains(part), "{outside}");
        }
        #[allow(clippy::reversed_empty_ranges)]
        let backwards = array.get([3..2, 0..1]);
        assert!(matches!(backwards, Err(Error::OutOfBounds { .. })));
        assert!(matches!(array.get(Patch::new(&[0..1, 0..1, 0..1])), Err(Error::OutOfBounds { .. })));
        let wrong = array.put([0..2, 0..2], &Array2::zeros((2, 3)));
        assert!(matches!(wrong, Err(Error::BufferShape { .. })));
        assert!(matches!(array.slice(s![..;2, ..]), Err(Error::Mismatch { .. })));
        assert_eq!(array.get(..).unwrap().sum(), 0.0);
        array.destroy().unwrap();
    });
}

#[test]
fn arrays_that_cannot_be_are_errors_on_all_ranks_alike() {
    for_each(1..=3, |world| {
        let builder = || GlobalArray::<f64>::builder(world, "odd", [6, 5]);
        let huge = GlobalArray::<f64>::create(world, "huge", [usize::MAX, 2]);
        assert!(matches!(huge, Err(Error::TooLarge { .. })));
        let huge = GlobalArray::<f64>::create(world, "huge", [usize::MAX, 0]);
        assert!(matches!(huge, Err(Error::TooLarge { .. })));
        let none = GlobalArray::<f64, IxDyn>::create(world, "none", IxDyn(&[]));
        assert!(matches!(none, Err(Error::Dimensions { dims: 0, .. })));
        let many = GlobalArray::<f64, IxDyn>::create(world, "many", IxDyn(&[1; 8]));
        assert!(matches!(many, Err(Error::Dimensions { dims: 8, .. })));
        let bad = [
            builder().irregular(&[vec![1], vec![0]]),
            builder().irregular(&[vec![0, 4, 3], vec![0]]),
            builder().irregular(&[vec![0, 7], vec![0]]),
            builder().irregular(&[vec![0, 1, 2, 3], vec![0]]),
            builder().irregular(&[vec![0]]),
            builder().min_block(&[1]),
            builder().block_cyclic(&[2, 0]),
            builder().scalapack(&[2, 2], &[2, 2]),
            builder().tiled(&[2, 2], &[0, 1]),
            builder().block_cyclic(&[2, 2]).ghosts(&[1, 0]),
        ];
        for builder in bad {
            let refused = builder.clone().create().map(drop);
            assert!(matches!(refused, Err(Error::Distribution { .. })), "{builder:?}: {refused:?}");
        }
        let many = GlobalArray::<f64, IxDyn>::create(world, "seven", IxDyn(&[2; 7])).unwrap();
        let copy = many.duplicate("copy").unwrap();
        assert_eq!((copy.shape(), copy.distribution()), (many.shape(), many.distribution()));
        copy.destroy().unwrap();
        many.destroy().unwrap();
    });
}
