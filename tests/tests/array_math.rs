//! Element-wise operations, copies and transposes against plain arrays, for every distribution and element type.

use armci_core::World;
use fastrand::Rng;
use global_arrays::{Error, GlobalArray, GlobalSlice, Patch};
use ndarray::{Array, Array2, ArrayD, Dimension, Ix1, Ix2, Ix3, IxDyn, Zip, s};
use tests::numbers::{Sample, around, mirror, patch_of, set_patch};
use tests::{each_type, for_each, matrix, spread};

/// What an array has now, to every rank.
fn found<T: Sample, D: Dimension>(array: &GlobalArray<T, D>) -> ArrayD<T> {
    let found = array.get(..).unwrap().into_dyn();
    array.sync().unwrap();
    found
}

type Operation<T, D> = (
    &'static str,
    fn(&GlobalSlice<'_, T, D>, &GlobalSlice<'_, T, D>, &GlobalSlice<'_, T, D>) -> Result<(), Error>,
    fn(T, T, T) -> T,
);

fn operations<T: Sample, D: Dimension>() -> Vec<Operation<T, D>> {
    vec![
        ("scale", |c, _, _| c.scale(T::whole(-3)), |c, _, _| c.by(T::whole(-3))),
        ("add_constant", |c, _, _| c.add_constant(T::whole(5)), |c, _, _| c.and(T::whole(5))),
        ("abs_value", |c, _, _| c.abs_value(), |c, _, _| c.modulus()),
        ("apply", |c, _, _| c.apply(|x| x.by(x)), |c, _, _| c.by(c)),
        ("assign_from", |c, a, _| c.assign_from(a, |x: T| x.mirrored()), |_, a, _| a.mirrored()),
        ("add", |c, a, b| c.add(T::whole(2), a, T::whole(-1), b), |_, a, b| T::whole(2).by(a).and(T::whole(-1).by(b))),
        ("multiply", |c, a, b| c.multiply(a, b), |_, a, b| a.by(b)),
        ("divide", |c, a, b| c.divide(a, b), |_, a, b| a.over(b)),
        ("maximum", |c, a, b| c.maximum(a, b), |_, a, b| if a.key() > b.key() { a } else { b }),
        ("minimum", |c, a, b| c.minimum(a, b), |_, a, b| if a.key() < b.key() { a } else { b }),
        ("reciprocal", |c, _, b| c.copy_from(b).and(c.reciprocal()), |_, _, b| T::whole(1).over(b)),
        ("c is a", |c, _, b| c.add(T::whole(2), c, T::whole(3), b), |c, _, b| T::whole(2).by(c).and(T::whole(3).by(b))),
        ("c is b", |c, a, _| c.combine(a, c, |a: T, c: T| a.by(c).and(c)), |c, a, _| a.by(c).and(c)),
        ("c is both", |c, _, _| c.multiply(c, c), |c, _, _| c.by(c)),
        ("a is b", |c, a, _| c.multiply(a, a), |_, a, _| a.by(a)),
        ("copy_from", |c, a, _| c.copy_from(a), |_, a, _| a),
        ("copy_to", |c, a, _| a.copy_to(c), |_, a, _| a),
        ("fill", |c, _, _| c.fill(T::whole(9)), |_, _, _| T::whole(9)),
    ]
}

/// Patches of three arrays, each of another shape and distribution.
fn agrees<T: Sample, D: Dimension>(world: &World, dims: usize, longest: usize, random: &mut Rng) {
    let shape = spread::shape::<D>(dims, longest, random);
    let shape = shape.slice();
    let places: [(D, Patch); 3] = std::array::from_fn(|_| around::<D>(shape, random));
    let (a, plain_a) = mirror::<T, D>(world, places[0].0.clone(), random, T::draw);
    let (b, plain_b) = mirror::<T, D>(world, places[1].0.clone(), random, T::draw_divisor);
    let (in_a, in_b, in_c) = (places[0].1, places[1].1, places[2].1);
    let (slice_a, slice_b) = (a.slice(in_a).unwrap(), b.slice(in_b).unwrap());
    for (name, operation, expected) in operations::<T, D>() {
        let (c, mut plain_c) = mirror::<T, D>(world, places[2].0.clone(), random, T::draw);
        operation(&c.slice(in_c).unwrap(), &slice_a, &slice_b).unwrap();
        let mut values = patch_of(&plain_c, &in_c);
        Zip::from(&mut values)
            .and(&patch_of(&plain_a, &in_a))
            .and(&patch_of(&plain_b, &in_b))
            .for_each(|c, a, b| *c = expected(*c, *a, *b));
        set_patch(&mut plain_c, &in_c, &values);
        let kind = std::any::type_name::<T>();
        assert_eq!(found(&c), plain_c, "{name} of {kind}, {in_c} of {:?}", c.distribution());
        c.destroy().unwrap();
    }
    assert_eq!((found(&a), found(&b)), (plain_a, plain_b), "operands stay as they are");
    a.destroy().unwrap();
    b.destroy().unwrap();
}

fn elementwise<T: Sample>(world: &World, random: &mut Rng) {
    agrees::<T, Ix1>(world, 1, 40, random);
    agrees::<T, Ix2>(world, 2, 14, random);
    agrees::<T, Ix3>(world, 3, 6, random);
    agrees::<T, IxDyn>(world, random.usize(1..=6), 4, random);
}

#[test]
fn elementwise_operations_agree_with_plain_arrays() {
    for_each(1..=5, |world| {
        let mut random = Rng::with_seed(11 + world.size() as u64);
        each_type!(elementwise(world, &mut random));
    });
}

#[test]
fn elementwise_operations_transfer_over_any_path() {
    matrix(|world| {
        let mut random = Rng::with_seed(12);
        agrees::<f64, Ix2>(world, 2, 20, &mut random);
        agrees::<i64, Ix3>(world, 3, 6, &mut random);
    });
}

#[test]
fn blocks_larger_than_a_piece_are_gone_through_whole() {
    for_each([1, 3], |world| {
        let mut random = Rng::with_seed(13);
        let shape = [700, 301];
        let (a, plain) = mirror::<f64, Ix2>(world, Ix2(700, 301), &mut random, f64::draw);
        let c = GlobalArray::<f64>::builder(world, "c", shape).irregular(&[vec![0], vec![0]]).create().unwrap();
        c.add(2.0, &a, 1.0, &a).unwrap();
        assert_eq!(found(&c), &plain * 3.0);
        let t = GlobalArray::<f64>::create(world, "t", [301, 700]).unwrap();
        t.transpose_from(&a).unwrap();
        assert_eq!(found(&t), plain.t());
        let turned = t.slice([0..301, 100..401]).unwrap();
        turned.transpose_from(turned).unwrap();
        let mut expected = plain.t().to_owned().into_dimensionality::<Ix2>().unwrap();
        let square = expected.slice(s![.., 100..401]).t().to_owned();
        expected.slice_mut(s![.., 100..401]).assign(&square);
        assert_eq!(found(&t), expected.into_dyn());
        for array in [a, c, t] {
            array.destroy().unwrap();
        }
    });
}

#[test]
fn whole_arrays_are_operands_as_they_are() {
    for_each(1..=3, |world| {
        let a = GlobalArray::<f64>::builder(world, "a", [5, 7]).filled(2.0).create().unwrap();
        let b = a.duplicate("b").unwrap();
        b.enumerate(1.0, 0.5).unwrap();
        let counted = Array2::from_shape_fn((5, 7), |(row, col)| 1.0 + 0.5 * (row * 7 + col) as f64);
        assert_eq!(found(&b), counted.clone().into_dyn());
        b.slice(s![1..3, 2..]).unwrap().enumerate(0.0, 1.0).unwrap();
        assert_eq!(b.get(s![1..3, 2..]).unwrap(), Array::from_shape_fn((2, 5), |(row, col)| (row * 5 + col) as f64));
        b.sync().unwrap();
        a.multiply(&a, &b).unwrap();
        b.scale(2.0).unwrap();
        assert_eq!(found(&a), found(&b));
        // Another element type.
        let flags = GlobalArray::<u8>::create(world, "flags", [5, 7]).unwrap();
        flags.combine(&a, b.whole(), |a: f64, b: f64| u8::from(a == b)).unwrap();
        assert!(flags.get(..).unwrap().iter().all(|flag| *flag == 1));
        let copy = flags.duplicate("copy").unwrap();
        copy.copy_from(&flags).unwrap();
        assert_eq!(copy.get(..).unwrap().sum(), 35);
        flags.destroy().unwrap();
        copy.destroy().unwrap();
        a.destroy().unwrap();
        b.destroy().unwrap();
    });
}

/// Patches of one array that overlap.
fn overlapping<T: Sample>(world: &World, random: &mut Rng) {
    let (a, mut plain) = mirror::<T, Ix2>(world, Ix2(12, 11), random, T::draw);
    let (to, from, other) = (Patch::from([3..10, 1..9]), Patch::from([1..8, 2..10]), Patch::from([4..11, 0..8]));
    let slice = |patch| a.slice(patch).unwrap();
    slice(to).copy_from(slice(from)).unwrap();
    let moved = patch_of(&plain, &from);
    set_patch(&mut plain, &to, &moved);
    assert_eq!(found(&a), plain);
    slice(from).copy_to(slice(to)).unwrap();
    let moved = patch_of(&plain, &from);
    set_patch(&mut plain, &to, &moved);
    assert_eq!(found(&a), plain);
    slice(to).combine(slice(from), slice(other), |x: T, y: T| x.and(y)).unwrap();
    let mut sum = patch_of(&plain, &from);
    sum.zip_mut_with(&patch_of(&plain, &other), |x, y| *x = x.and(*y));
    set_patch(&mut plain, &to, &sum);
    assert_eq!(found(&a), plain);
    // A square in itself, and onto what it overlaps.
    let (square, beside) = (Patch::from([0..9, 2..11]), Patch::from([1..10, 0..9]));
    for patch in [square, beside] {
        slice(square).transpose_from(slice(patch)).unwrap();
        let turned = patch_of(&plain, &patch).t().to_owned();
        set_patch(&mut plain, &square, &turned);
        assert_eq!(found(&a), plain);
    }
    a.destroy().unwrap();
}

#[test]
fn patches_of_one_array_may_overlap() {
    for_each(1..=5, |world| {
        let mut random = Rng::with_seed(21);
        for _ in 0..3 {
            each_type!(overlapping(world, &mut random));
        }
    });
    matrix(|world| overlapping::<f64>(world, &mut Rng::with_seed(22)));
}

fn permuted<T: Sample, D: Dimension>(world: &World, dims: usize, longest: usize, random: &mut Rng) {
    let shape = spread::shape::<D>(dims, longest, random);
    let mut axes: Vec<usize> = (0..dims).collect();
    random.shuffle(&mut axes);
    let reversed: Vec<usize> = (0..dims).rev().collect();
    for (axes, reverses) in [(&axes, false), (&reversed, true)] {
        let turned: Vec<usize> = axes.iter().map(|axis| shape[*axis]).collect();
        let ((outer_a, in_a), (outer_b, in_b)) = (around::<D>(shape.slice(), random), around::<D>(&turned, random));
        let (a, plain_a) = mirror::<T, D>(world, outer_a, random, T::draw);
        let (b, mut plain_b) = mirror::<T, D>(world, outer_b, random, T::draw);
        let (from, to) = (a.slice(in_a).unwrap(), b.slice(in_b).unwrap());
        if reverses {
            to.transpose_from(from).unwrap();
        } else {
            let mut order = D::zeros(dims);
            order.slice_mut().copy_from_slice(axes);
            to.permute_from(from, order).unwrap();
        }
        let values = patch_of(&plain_a, &in_a).permuted_axes(&axes[..]).to_owned();
        set_patch(&mut plain_b, &in_b, &values);
        assert_eq!(found(&b), plain_b, "{in_b} from {in_a}, {axes:?}");
        a.destroy().unwrap();
        b.destroy().unwrap();
    }
}

fn permutations<T: Sample>(world: &World, random: &mut Rng) {
    permuted::<T, Ix1>(world, 1, 20, random);
    permuted::<T, Ix2>(world, 2, 50, random);
    permuted::<T, Ix3>(world, 3, 9, random);
    permuted::<T, IxDyn>(world, random.usize(4..=6), 4, random);
}

#[test]
fn transposes_and_permutations_agree_with_plain_arrays() {
    for_each(1..=5, |world| {
        let mut random = Rng::with_seed(31 + world.size() as u64);
        each_type!(permutations(world, &mut random));
    });
    matrix(|world| permutations::<f64>(world, &mut Rng::with_seed(32)));
}

fn symmetric<T: Sample>(world: &World, random: &mut Rng) {
    for side in [1, 7, 30] {
        let (outer, patch) = around::<Ix2>(&[side, side], random);
        let (a, mut plain) = mirror::<T, Ix2>(world, outer, random, T::draw);
        a.slice(patch).unwrap().symmetrize().unwrap();
        let square = patch_of(&plain, &patch);
        let mut mean = square.clone();
        mean.zip_mut_with(&square.t(), |x, y| *x = x.and(*y).over(T::whole(2)));
        set_patch(&mut plain, &patch, &mean);
        assert_eq!(found(&a), plain);
        a.destroy().unwrap();
    }
}

#[test]
fn symmetrized_matrices_are_the_mean_of_both_halves() {
    for_each(1..=5, |world| {
        let mut random = Rng::with_seed(41 + world.size() as u64);
        for _ in 0..3 {
            each_type!(symmetric(world, &mut random));
        }
        let (large, plain) = mirror::<f64, Ix2>(world, Ix2(300, 300), &mut random, f64::draw);
        large.symmetrize().unwrap();
        assert_eq!(found(&large), (&plain + &plain.t()) / 2.0);
        large.destroy().unwrap();
    });
    matrix(|world| symmetric::<f64>(world, &mut Rng::with_seed(42)));
}

#[test]
fn copies_go_between_shapes_of_equally_many_elements() {
    for_each(1..=5, |world| {
        let mut random = Rng::with_seed(51 + world.size() as u64);
        for _ in 0..4 {
            let ((outer_a, in_a), (outer_b, in_b)) =
                (around::<Ix3>(&[4, 3, 10], &mut random), around::<Ix2>(&[8, 15], &mut random));
            let (a, plain_a) = mirror::<i64, Ix3>(world, outer_a, &mut random, i64::draw);
            let (b, mut plain_b) = mirror::<i64, Ix2>(world, outer_b, &mut random, i64::draw);
            b.slice(in_b).unwrap().reshape_from(a.slice(in_a).unwrap()).unwrap();
            let values = patch_of(&plain_a, &in_a).into_shape_with_order(IxDyn(&[8, 15])).unwrap();
            set_patch(&mut plain_b, &in_b, &values);
            assert_eq!(found(&b), plain_b);
            assert!(matches!(b.whole().reshape_from(&a), Err(Error::Mismatch { .. })));
            a.destroy().unwrap();
            b.destroy().unwrap();
        }
    });
}

#[test]
fn copies_go_between_groups() {
    matrix(|world| {
        let team = world.split(Some((world.rank() % 2) as i64), 0).unwrap().unwrap();
        let all = GlobalArray::<f64>::create(world, "all", [9, 8]).unwrap();
        all.enumerate(0.0, 1.0).unwrap();
        let part = GlobalArray::<f64>::builder(&team, "part", [4, 8]).block_cyclic(&[3, 3]).create().unwrap();
        // From the larger group, ...
        let half = |number: usize| s![4 * number..4 * number + 4, ..];
        part.copy_from(all.slice(half(world.rank() % 2)).unwrap()).unwrap();
        part.scale(-1.0).unwrap();
        world.barrier().unwrap();
        // ... and, by those of the smaller one, back.
        part.copy_to(all.slice(half(world.rank() % 2)).unwrap()).unwrap();
        all.sync().unwrap();
        let teams = world.size().min(2);
        let expected = Array2::from_shape_fn((9, 8), |(row, col)| {
            let value = (row * 8 + col) as f64;
            if row < 4 * teams { -value } else { value }
        });
        assert_eq!(found(&all), expected.into_dyn());
        part.destroy().unwrap();
        all.destroy().unwrap();
        team.free().unwrap();
    });
}

#[test]
fn ghost_cells_are_not_touched() {
    for_each(1..=5, |world| {
        let make =
            || GlobalArray::<f64>::builder(world, "ghosts", [9, 10]).ghosts(&[1, 2]).filled(7.0).create().unwrap();
        let (a, b) = (make(), make());
        a.enumerate(0.0, 1.0).unwrap();
        b.copy_from(&a).unwrap();
        b.add(1.0, &a, 1.0, &b).unwrap();
        b.apply(|x| x + 1.0).unwrap();
        a.transpose_from(GlobalArray::<f64>::slice(&b, s![..9, ..9]).unwrap()).unwrap_err();
        a.slice(s![.., ..9]).unwrap().transpose_from(b.slice(s![.., 1..]).unwrap()).unwrap();
        a.slice(s![.., 1..]).unwrap().symmetrize().unwrap();
        a.slice(s![.., ..9]).unwrap().zero_diagonal().unwrap();
        for array in [&a, &b] {
            let mine = array.distribution().block_on(world.rank()).unwrap();
            if !mine.is_empty() {
                let first = array.pointer((mine.range(0).start, mine.range(1).start)).unwrap();
                let (lines, row) = (mine.shape()[0], mine.shape()[1] + 4);
                // From the block's first element on, to the last ghost cell behind it.
                for place in row + 2..(lines + 2) * row {
                    let (line, cell) = (place / row, place % row);
                    let inside = line <= lines && (2..row - 2).contains(&cell);
                    let value: f64 = world.get_value(first.add(place - row - 2)).unwrap();
                    assert!(inside || value == 7.0, "({line}, {cell}) is {value}");
                }
            }
        }
        a.sync().unwrap();
        a.destroy().unwrap();
        b.destroy().unwrap();
    });
}

#[test]
fn integers_are_not_divided_by_zero_and_all_ranks_know() {
    for_each(1..=4, |world| {
        let a = GlobalArray::<i64, Ix1>::builder(world, "a", [13]).filled(6).create().unwrap();
        let b = GlobalArray::<i64, Ix1>::builder(world, "b", [13]).filled(2).create().unwrap();
        b.slice(5..6).unwrap().zero().unwrap();
        let refused = a.divide(&a, &b);
        let mine = a.distribution().owner(&[5]) == Some(world.rank());
        match refused {
            Err(Error::DivisionByZero { .. }) => assert!(mine),
            Err(Error::Elsewhere { rank, .. }) => assert_eq!((Some(rank), mine), (a.distribution().owner(&[5]), false)),
            other => panic!("{other:?}"),
        }
        assert_eq!(a.get(..).unwrap().to_vec(), [3, 3, 3, 3, 3, 0, 3, 3, 3, 3, 3, 3, 3]);
        a.sync().unwrap();
        assert!(a.reciprocal().is_err());
        let x = GlobalArray::<f64, Ix1>::create(world, "x", [4]).unwrap();
        x.reciprocal().unwrap();
        assert_eq!(x.get(..).unwrap().to_vec(), [f64::INFINITY; 4]);
        x.destroy().unwrap();
        a.destroy().unwrap();
        b.destroy().unwrap();
    });
}

#[test]
fn operands_that_do_not_fit_are_errors_on_all_ranks_alike() {
    for_each(1..=3, |world| {
        let a = GlobalArray::<f64>::create(world, "a", [4, 5]).unwrap();
        let b = GlobalArray::<f64>::create(world, "b", [5, 4]).unwrap();
        let refused = [
            a.copy_from(&b),
            a.copy_to(&b),
            a.add(1.0, &a, 1.0, &b),
            a.multiply(&b, &a),
            a.transpose_from(&a),
            a.permute_from(&b, [0, 0]),
            a.permute_from(&b, [0, 1]),
            a.symmetrize(),
            a.dot(&b).map(drop),
        ];
        for refused in refused {
            assert!(matches!(refused, Err(Error::Mismatch { .. })), "{refused:?}");
        }
        a.transpose_from(&b).unwrap();
        a.destroy().unwrap();
        b.destroy().unwrap();
    });
}

#[test]
fn an_error_of_one_rank_is_an_error_of_all() {
    for_each(2..=4, |world| {
        let refuse = world.register(|_, _| Err("not today".into())).unwrap();
        let make = |name| GlobalArray::<f64>::builder(world, name, [9, 9]).filled(1.0).create().unwrap();
        let (a, b, y) = (make("a"), make("b"), GlobalArray::<f64, Ix1>::create(world, "y", 9).unwrap());
        let x = y.duplicate("x").unwrap();
        type Operation<'a> = &'a dyn Fn() -> Result<(), Error>;
        let operations: [(&str, Operation<'_>); 10] = [
            ("fill", &|| a.fill(2.0)),
            ("scale", &|| a.scale(2.0)),
            ("add", &|| a.add(1.0, &a, 2.0, &b)),
            ("copy_from", &|| a.copy_from(&b)),
            ("copy_to", &|| a.copy_to(&b)),
            ("transpose", &|| a.transpose_from(&b)),
            ("norm1", &|| a.norm1().map(drop)),
            ("diagonal", &|| a.get_diagonal(&y)),
            ("matrix product", &|| a.assign_product(1.0, &b, &b, 0.0)),
            ("vector product", &|| y.assign_product(1.0, &b, &x, 0.0)),
        ];
        for (name, operation) in operations {
            if world.rank() == 1 {
                world.send(0, refuse, &[]).unwrap();
            }
            match operation() {
                Err(Error::Runtime { .. }) if world.rank() == 1 => {}
                Err(Error::Elsewhere { rank: 1, .. }) if world.rank() != 1 => {}
                other => panic!("{name}: {other:?}"),
            }
            // All is well again.
            operation().unwrap();
        }
        for array in [a, b] {
            array.destroy().unwrap();
        }
        for vector in [x, y] {
            vector.destroy().unwrap();
        }
    });
}
