//! Ranks of different nodes: what goes between them does what it does on a node.

use tests::Ranks;

/// Runs `body` on virtual nodes: two ranks apart, and four on two nodes.
fn in_each_job(body: impl Fn(&armci_core::World)) {
    for (ranks, nodes) in [(2, 2), (4, 2)] {
        for protocol in ["rma", "am"] {
            for progress in ["thread", "none"] {
                Ranks::new(ranks)
                    .nodes(nodes)
                    .env("ARMCI_PROTOCOL", protocol)
                    .env("ARMCI_PROGRESS", progress)
                    .env("ARMCI_VERBOSE", "1")
                    .run(&body);
            }
        }
    }
}

#[test]
fn messages_cross_nodes() {
    in_each_job(|world| {
        let handler = world.register(|delivery, reply| {
            reply.set(&[&[delivery.source as u8], delivery.payload].concat());
            Ok(())
        });
        let handler = handler.unwrap();
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
