//! The checker and arrays: a conflict is named by the lines of the program that make it, whatever the operation; and what
//! is synchronised is no conflict.

use armci_core::World;
use global_arrays::{GlobalArray, nonblocking};
use ndarray::{Array2, arr1, s};
use tests::Ranks;

type Matrix = GlobalArray<f64>;

/// A call of the program, and the line it is on.
type Call = (u32, fn(&World, &Matrix));

macro_rules! call {
    ($call:expr) => {
        (line!(), $call)
    };
}

fn ones() -> Array2<f64> {
    Array2::ones((8, 8))
}

fn lent(buffer: &mut Array2<f64>, body: impl FnOnce(&mut Array2<f64>)) {
    body(buffer);
}

const CALLS: &[Call] = &[
    call!(|_, a| drop(a.get(..).unwrap())),
    call!(|_, a| a.put(.., &ones()).unwrap()),
    call!(|_, a| a.accumulate(.., 1.0, &ones()).unwrap()),
    call!(|_, a| a.get_into(s![..;-1, ..;2], ones().slice_mut(s![.., ..4])).unwrap()),
    call!(|_, a| drop(a.get_nb(..).unwrap().wait().unwrap())),
    call!(|_, a| drop(a.put_nb(.., ones()).unwrap().wait().unwrap())),
    call!(|_, a| drop(a.accumulate_nb(.., 1.0, ones()).unwrap().wait().unwrap())),
    call!(|_, a| assert!(a.get_element([3, 3]).unwrap() >= 0.0)),
    call!(|_, a| a.put_element([3, 3], 1.0).unwrap()),
    call!(|_, a| drop(a.gather(&[[3, 3], [0, 0], [7, 7]]).unwrap())),
    call!(|_, a| a.scatter(&[[3, 3], [0, 0]], &arr1(&[1.0, 2.0])).unwrap()),
    call!(|_, a| a.scatter_accumulate(&[[3, 3], [0, 0]], 1.0, &arr1(&[1.0, 2.0])).unwrap()),
    call!(|_, a| drop(a.elements(&[[3, 3]]).unwrap().gather().unwrap())),
    call!(|_, a| drop(a.periodic_get([-1..7, -1..7]).unwrap())),
    call!(|_, a| a.periodic_put([-1..7, -1..7], &ones()).unwrap()),
    call!(|_, a| a.periodic_accumulate([-1..7, -1..7], 1.0, &ones()).unwrap()),
    call!(|world, a| lent(&mut ones(), |ones| nonblocking(world, |scope| scope.get(a, .., ones).map(drop)).unwrap())),
    call!(|_, a| drop(a.ghost_block().unwrap())),
    call!(|_, a| a.put_ghost_block(&Array2::ones(a.ghost_block().unwrap().raw_dim())).unwrap()),
    call!(|_, a| drop(a.read_local().unwrap())),
];

/// What the checker says of a job of two ranks.
fn conflicts(body: impl Fn(&World), judge: impl Fn(&[&str])) {
    for protocol in ["rma", "am"] {
        let job = Ranks::new(2).env("ARMCI_CHECK", "1").env("ARMCI_PROTOCOL", protocol);
        if let Some(stderr) = job.run_for_stderr(&body) {
            judge(&stderr.lines().filter(|line| line.contains(" both touch ")).collect::<Vec<_>>());
        }
    }
}

#[test]
fn a_conflict_is_named_by_the_lines_that_make_it() {
    const OTHER: u32 = line!() + 6;
    const GHOSTS: u32 = line!() + 11;
    let body = |world: &World| {
        let a = Matrix::builder(world, "a", [8, 8]).ghosts(&[1, 1]).create().unwrap();
        for (_, call) in CALLS {
            if world.rank() == 1 {
                a.put(.., &ones()).unwrap();
            } else {
                call(world, &a);
            }
            a.sync().unwrap();
        }
        a.update_ghosts_while(|| a.put(.., &ones()).unwrap()).unwrap();
        a.sync().unwrap();
        a.destroy().unwrap();
    };
    conflicts(body, |said| {
        let named = |line: u32| format!("array_checked.rs:{line} ");
        for line in CALLS.iter().map(|(line, _)| *line).chain([GHOSTS]) {
            let told = |text: &&&str| format!("{text} ").contains(&named(line));
            assert!(said.iter().any(|text| told(&text)), "line {line} in {said:#?}");
        }
        assert!(said.iter().all(|text| text.matches("array_checked.rs:").count() == 2), "{said:#?}");
        assert!(said.iter().any(|text| text.contains(&named(OTHER))), "{said:#?}");
    });
}

#[test]
#[allow(clippy::reversed_empty_ranges)] // (as ndarray counts, from the end)
fn what_is_synchronised_is_no_conflict() {
    let body = |world: &World| {
        let a = Matrix::builder(world, "a", [8, 8]).ghosts(&[1, 1]).periodic(&[true, false]).create().unwrap();
        let b = a.duplicate("b").unwrap();
        for step in 0..3 {
            a.indexed_map_inplace(|(row, col), value| *value = (row * col + step) as f64).unwrap();
            a.update_ghosts().unwrap();
            let cells = a.ghost_block().unwrap();
            let mine = a.block_on(world.rank()).unwrap();
            b.put(mine, &cells.slice(s![1..-1, 1..-1])).unwrap();
            b.sync().unwrap();
            b.accumulate(.., 0.5, &ones()).unwrap();
            b.sync().unwrap();
            assert_eq!(b.get([7..8, 7..8]).unwrap()[[0, 0]], (49 + step + 1) as f64);
            b.sync().unwrap();
        }
        b.destroy().unwrap();
        a.destroy().unwrap();
    };
    conflicts(body, |said| assert!(said.is_empty(), "{said:#?}"));
}
