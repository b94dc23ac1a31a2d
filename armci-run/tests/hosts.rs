//! A job over several hosts, which are network namespaces here: it works as on one, and ends as a whole whatever dies.

mod common;

use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use common::{Ended, Run, Running, play_outside, wait_until};
use rustix::process::{Pid, Signal, kill_process};
use tests::hosts::Hosts;

/// A job whose hosts all answer is over within this time after a failure.
const AT_ONCE: Duration = Duration::from_secs(3);
/// One that must find out that a host does not, within this.
const SOON: Duration = Duration::from_secs(15);

/// A remote shell that behaves as ssh does: what it starts is no child of the launcher, and does not die with it.
const DETACHED: &str = r#"
exec 3<&0
setsid ip netns exec "$@" <&3 3<&- &
exec 3<&-
wait $!
"#;

/// A script in the tests' directory.
fn script(name: &str, text: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
    std::fs::write(&path, format!("#!/bin/sh\n{text}")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path
}

/// `armci-run` in the hub, over these hosts.
fn over(hosts: &Hosts, ranks: usize, options: &[&str], program: &[&str]) -> Run {
    over_with(hosts, "ip netns exec", ranks, options, program)
}

fn over_with(hosts: &Hosts, shell: &str, ranks: usize, options: &[&str], program: &[&str]) -> Run {
    let list = hosts.names().join(",");
    let number = ranks.to_string();
    let words = [&["-n", &number, "--hosts", &list, "--rsh", shell][..], options, program].concat();
    Run::within(hosts.in_hub(env!("CARGO_BIN_EXE_armci-run")), &words)
}

/// This test binary as the program, whose test `test` finds itself in a role.
fn this(test: &str) -> [String; 4] {
    let this = std::env::current_exe().unwrap();
    [this.to_str().unwrap().to_owned(), "--exact".to_owned(), test.to_owned(), "--nocapture".to_owned()]
}

fn role(hosts: &Hosts, ranks: usize, test: &str, role: &str) -> Run {
    over(hosts, ranks, &[], &this(test).each_ref().map(String::as_str)).acting(role)
}

fn only_message(ended: &Ended) -> &str {
    let messages = ended.messages();
    assert_eq!(messages.len(), 1, "{}\n{}", ended.stderr, ended.stdout);
    messages[0]
}

/// Waits until so many ranks say that they are at work.
fn at_work(running: &mut Running, ranks: usize) {
    let mut seen = 0;
    while seen < ranks {
        let line = running.line();
        assert!(!line.is_empty() || running.child.try_wait().unwrap().is_none(), "it ended too soon");
        seen += line.matches("at work").count();
    }
}

#[test]
fn ranks_know_their_place_and_exchange() {
    play_outside(|role| {
        let mut job = armci_core::job::bootstrap().unwrap();
        let who = job.identity().clone();
        let hosts: usize = role.parse().unwrap();
        let first = |node: usize| node * who.size / hosts;
        let node = (0..hosts).rev().find(|node| first(*node) <= who.rank).unwrap();
        assert_eq!((who.nodes, who.node, who.nodes_here), (hosts, node, hosts));
        assert_eq!((who.local_rank, who.local_size), (who.rank - first(node), first(node + 1) - first(node)));
        for round in 0..20u8 {
            // Shares of different lengths, some larger than a socket takes at once.
            let share = |rank: usize| vec![round; if round == 7 { 150_000 * rank } else { rank }];
            let all = job.all_gather(&share(who.rank)).unwrap();
            assert_eq!(all, (0..who.size).map(share).collect::<Vec<_>>());
            job.meet().unwrap();
        }
        let network = std::fs::read_link("/proc/self/ns/net").unwrap();
        let networks = job.all_gather(network.to_str().unwrap().as_bytes()).unwrap();
        let distinct: std::collections::HashSet<_> = networks.iter().collect();
        assert_eq!(distinct.len(), hosts, "hosts are network namespaces");
        job.goodbye().unwrap();
    });
    for (hosts, ranks) in [(2, 4), (2, 3), (3, 3), (3, 7)] {
        let Some(hosts) = Hosts::make(hosts) else { return };
        let number = hosts.names().len().to_string();
        let ended = role(&hosts, ranks, "ranks_know_their_place_and_exchange", &number).end();
        assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
        assert_eq!(ended.messages(), [""; 0]);
    }
}

#[test]
fn output_input_and_settings_reach_where_they_should() {
    let Some(hosts) = Hosts::make(2) else { return };
    let input = || {
        let (reader, writer) = std::io::pipe().unwrap();
        Write::write_all(&mut { writer }, b"for rank 0\n").unwrap();
        reader
    };
    let options = ["--tag-output", "-x", "SAID=here", "-x", "GIVEN"];
    let script = "cat; echo $SAID $GIVEN $ARMCI_PROTOCOL; pwd; echo error >&2";
    let run = over(&hosts, 3, &options, &["sh", "-c", script]).stdin(input());
    let ended = run.env("GIVEN", "a b").env("ARMCI_PROTOCOL", "am").end();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let sorted = |text: &str| {
        let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    let here = std::env::current_dir().unwrap();
    let each = |rank| [format!("[{rank}] here a b am"), format!("[{rank}] {}", here.display())];
    let mut expected: Vec<_> = (0..3).flat_map(each).chain(["[0] for rank 0".to_owned()]).collect();
    expected.sort();
    assert_eq!(sorted(&ended.stdout), expected);
    assert_eq!(sorted(&ended.stderr), ["[0] error", "[1] error", "[2] error"]);

    // Without tags, and much of it: nothing is lost or mixed with the other stream.
    let script = "cat | tail -c 9; yes 12345678 | head -n 100000; echo error >&2";
    let large = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("input-{}", std::process::id()));
    std::fs::write(&large, [&vec![b'x'; 3 << 20][..], b"the end!\n"].concat()).unwrap();
    let run = over(&hosts, 2, &[], &["sh", "-c", script]).stdin(std::fs::File::open(&large).unwrap());
    let ended = run.end();
    std::fs::remove_file(&large).unwrap();
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), "error\nerror\n"));
    assert_eq!(ended.stdout.len(), 2 * 900_000 + 9);
    assert_eq!(ended.stdout.matches("the end!\n").count(), 1);
}

#[test]
fn codes_and_signals_of_ranks_elsewhere_are_the_jobs() {
    let Some(hosts) = Hosts::make(2) else { return };
    let name = &hosts.names()[1];
    for (end, code, how) in
        [("exit 7", 7, "exited with code 7"), ("kill -9 $$", 137, "was killed by signal 9 (SIGKILL)")]
    {
        let script = format!("trap '' TERM; case \"$ARMCI_JOB\" in *rank=3*) {end};; *) sleep 100 & sleep 100;; esac");
        let ended = over(&hosts, 4, &[], &["sh", "-c", &script]).end();
        assert_eq!(ended.code, Some(code), "{}", ended.stderr);
        let message = only_message(&ended);
        assert!(message.starts_with("armci-run: rank 3 (pid "), "{message}");
        assert!(message.ends_with(&format!(" on host {name}) {how}; ending the other 3 ranks")), "{message}");
        assert!(ended.after < AT_ONCE, "{:?}", ended.after);
    }
    let ended = over(&hosts, 2, &[], &["no-such-program-anywhere"]).end();
    assert_eq!(ended.code, Some(127));
    assert!(only_message(&ended).contains("no-such-program-anywhere"), "{}", ended.stderr);
}

#[test]
fn ranks_that_break_the_rules_are_named_across_hosts() {
    play_outside(|role| {
        if role == "one host stays out" && std::env::var("ARMCI_JOB").unwrap().contains("node=1/2") {
            std::process::exit(0);
        }
        let mut job = armci_core::job::bootstrap().unwrap();
        let rank = job.identity().rank;
        match role {
            "one leaves" if rank == 3 => {
                job.meet().unwrap();
                std::process::exit(0);
            }
            "differ" if rank >= 2 => drop(job.goodbye()),
            "one leaves" => {
                job.meet().unwrap();
                drop(job.meet());
            }
            _ => drop(job.meet()),
        }
        std::thread::sleep(Duration::from_secs(100));
    });
    let Some(hosts) = Hosts::make(2) else { return };
    let name = &hosts.names()[1];
    for (what, words) in [
        ("one leaves", ["rank 3 (pid ", "left without finalize"]),
        ("differ", [name, "same order"]),
        ("one host stays out", ["without joining", name]),
    ] {
        let ended = role(&hosts, 4, "ranks_that_break_the_rules_are_named_across_hosts", what).end();
        assert_eq!(ended.code, Some(1), "{what}: {}", ended.stderr);
        let message = only_message(&ended);
        assert!(words.iter().all(|word| message.contains(word)), "{what}: {message}");
        assert!(ended.after < AT_ONCE, "{what}: {:?}", ended.after);
    }
}

/// A rank that joins, says so, and waits to be ended.
fn work() {
    let mut job = armci_core::job::bootstrap().unwrap();
    job.meet().unwrap();
    println!("at work");
    std::thread::sleep(Duration::from_secs(200));
}

#[test]
fn whatever_is_killed_the_job_ends_everywhere() {
    play_outside(|_| work());
    let Some(hosts) = Hosts::make(2) else { return };
    let program = this("whatever_is_killed_the_job_ends_everywhere");
    let program = program.each_ref().map(String::as_str);
    let detached = script("detached", DETACHED);
    let shells = ["ip netns exec", detached.to_str().unwrap()];
    let name = &hosts.names()[1];
    for shell in shells {
        let start = || {
            let mut running = over_with(&hosts, shell, 4, &[], &program).acting("worker").start();
            at_work(&mut running, 4);
            running
        };

        let running = start();
        let victim = running.ranks()[&2];
        kill_process(victim, Signal::KILL).unwrap();
        let ended = running.end();
        assert_eq!(ended.code, Some(137), "{}", ended.stderr);
        let expected = format!(
            "armci-run: rank 2 (pid {victim} on host {name}) was killed by signal 9 (SIGKILL); ending the other 3 ranks"
        );
        assert_eq!(only_message(&ended), expected);
        assert!(ended.after < AT_ONCE, "{:?}", ended.after);

        let running = start();
        let rank = running.ranks()[&2];
        let status = std::fs::read_to_string(format!("/proc/{rank}/status")).unwrap();
        let agent = status.lines().find_map(|line| line.strip_prefix("PPid:")).unwrap().trim().parse().unwrap();
        kill_process(Pid::from_raw(agent).unwrap(), Signal::KILL).unwrap();
        let ended = running.end();
        let message = only_message(&ended);
        assert!(
            ended.code.is_some_and(|code| code != 0) && message.contains(&format!("host {name} (ranks 2 to 3): ")),
            "{message}"
        );
        assert!(ended.after < AT_ONCE, "{:?}", ended.after);

        // Nobody is left to say anything: the agents must notice.
        let running = start();
        running.signal(Signal::KILL);
        assert_eq!(running.end().code, None);

        let running = start();
        running.signal(Signal::TERM);
        let ended = running.end();
        assert_eq!(ended.code, Some(143), "{}", ended.stderr);
        assert_eq!(only_message(&ended), "armci-run: asked to end by SIGTERM; ending the 4 ranks");
    }
    std::fs::remove_file(detached).unwrap();
}

#[test]
fn a_host_whose_line_is_pulled_ends_the_job_by_name() {
    play_outside(|_| work());
    let Some(hosts) = Hosts::make(3) else { return };
    let detached = script("pulled", DETACHED);
    let program = this("a_host_whose_line_is_pulled_ends_the_job_by_name");
    let program = program.each_ref().map(String::as_str);
    let mut running = over_with(&hosts, detached.to_str().unwrap(), 3, &[], &program).acting("worker").start();
    at_work(&mut running, 3);
    let begin = Instant::now();
    hosts.pull(1);
    let ended = running.end();
    let message = only_message(&ended);
    let expected = format!("host {} (rank 1): it has not answered for 5 seconds", hosts.names()[1]);
    assert!(message.contains(&expected) && message.ends_with("ending the other 2 ranks"), "{message}");
    assert_eq!(ended.code, Some(1));
    println!("over {:?} after the line was pulled", begin.elapsed());
    assert!(begin.elapsed() < SOON, "{:?}", begin.elapsed());
    std::fs::remove_file(detached).unwrap();
}

#[test]
fn a_suspended_job_is_no_lost_host() {
    let Some(hosts) = Hosts::make(2) else { return };
    let mut running = over(&hosts, 2, &[], &["sh", "-c", "sleep 100 & echo at work; wait"]).apart().start();
    at_work(&mut running, 2);
    let all = |state: char| running.states().chars().filter(|&c| c == state).count();
    running.signal(Signal::TSTP);
    // The launcher, two shells, two sleeps; the agents stay awake.
    wait_until("everybody to stop", || all('T') == 5);
    std::thread::sleep(Duration::from_secs(8));
    running.signal(Signal::CONT);
    wait_until("everybody to go on", || all('T') == 0);
    assert!(running.child.try_wait().unwrap().is_none());
    running.signal(Signal::TERM);
    assert_eq!(running.end().code, Some(143));
}

#[test]
fn an_agent_that_does_not_come_is_one_clear_line() {
    let Some(hosts) = Hosts::make(2) else { return };
    let name = &hosts.names()[1];
    let broken =
        script("broken", &format!("[ \"$1\" = {name} ] || exec ip netns exec \"$@\"; echo no route >&2; exit 3"));
    let ended = over_with(&hosts, broken.to_str().unwrap(), 4, &[], &["true"]).end();
    assert_eq!(ended.code, Some(3));
    let message = only_message(&ended);
    for words in [&format!("host {name} (ranks 2 to 3)"), "exited with code 3", "before its agent had called back"] {
        assert!(message.contains(words), "{message}");
    }
    assert!(ended.stderr.contains("no route\n"), "{}", ended.stderr);

    let ended = over_with(&hosts, "/no/such/shell", 2, &[], &["true"]).end();
    assert_eq!(ended.code, Some(1));
    assert!(only_message(&ended).contains("/no/such/shell") && ended.stderr.contains("--rsh"), "{}", ended.stderr);

    let ended = over(&hosts, 2, &["--agent-path", "/no/such/armci-run"], &["true"]).end();
    assert_ne!(ended.code, Some(0));
    assert!(only_message(&ended).contains("before its agent had called back"), "{}", ended.stderr);

    // An address that leads elsewhere: the agent says so.
    let ended = over(&hosts, 2, &["--address", "127.0.0.1"], &["true"]).end();
    assert_eq!(ended.code, Some(1));
    assert!(ended.stderr.contains("127.0.0.1:") && ended.stderr.contains("does not answer"), "{}", ended.stderr);
    std::fs::remove_file(broken).unwrap();
}

#[test]
fn a_wrong_secret_opens_nothing() {
    let Some(hosts) = Hosts::make(2) else { return };
    // The secret lies behind one address: frame and count, 16 bytes; its length and text; the port.
    let before = 8 + 8 + 8 + hosts.hub_address().len() + 8;
    let garbled = script(
        "garbled",
        &format!(
            "{{ dd bs=1 count={before} status=none; dd bs=1 count=16 status=none >/dev/null; printf 0123456789abcdef; exec cat; }} | ip netns exec \"$@\"\n"
        ),
    );
    let ended = over_with(&hosts, garbled.to_str().unwrap(), 2, &["--address", "bridge0"], &["echo", "ran"]).end();
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(1), ""), "{}", ended.stderr);
    assert!(ended.stderr.contains("does not answer at any of its addresses"), "{}", ended.stderr);
    assert!(ended.messages().iter().any(|line| line.contains("before its agent had called back")), "{}", ended.stderr);
    std::fs::remove_file(garbled).unwrap();
}

#[test]
fn who_only_knocks_is_ignored() {
    let Some(hosts) = Hosts::make(2) else { return };
    // The agents are late, so that the door is open for a while.
    let late = script("late", "sleep 4; exec ip netns exec \"$@\"");
    let running = over_with(&hosts, late.to_str().unwrap(), 2, &[], &["echo", "ran"]).start();
    let knocking = std::thread::scope(|scope| {
        let knock = || {
            let hub = std::fs::File::open(Hosts::file(&hosts.hub())).unwrap();
            let here = rustix::thread::LinkNameSpaceType::Network;
            rustix::thread::move_into_link_name_space(std::os::fd::AsFd::as_fd(&hub), Some(here)).unwrap();
            wait_until("the launcher to listen", || port_of_listener().is_some());
            let address = SocketAddr::new(hosts.hub_address().parse().unwrap(), port_of_listener().unwrap());
            let mut held = Vec::new();
            for round in 0..300u32 {
                let mut stream = TcpStream::connect(address).unwrap();
                // Rubbish of all kinds, a frame that promises much, silence; some hang up, some stay.
                let words = [
                    vec![],
                    b"GET / HTTP/1.0\r\n\r\n".to_vec(),
                    vec![0xff; 9000],
                    [1, 0, 0, 0, 0, 0, 0, 3, 7].to_vec(),
                ];
                // The launcher may have hung up already.
                let _ = stream.write_all(&words[round as usize % 4]);
                if round % 3 == 0 {
                    held.push(stream);
                }
            }
            held.len()
        };
        scope.spawn(knock).join().unwrap()
    });
    assert_eq!(knocking, 100);
    let ended = running.end();
    assert_eq!((ended.code, ended.stdout.as_str(), ended.stderr.as_str()), (Some(0), "ran\nran\n", ""));
    std::fs::remove_file(late).unwrap();
}

/// The port of the only listening socket in this thread's network namespace.
fn port_of_listener() -> Option<u16> {
    ["/proc/thread-self/net/tcp", "/proc/thread-self/net/tcp6"].iter().find_map(|table| {
        let text = std::fs::read_to_string(table).unwrap();
        let listening = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        let port = |words: Vec<&str>| Some(words.get(1)?.rsplit_once(':')?.1.to_owned());
        let port = listening.filter(|words| words.get(3) == Some(&"0A")).find_map(port)?;
        u16::from_str_radix(&port, 16).ok()
    })
}

#[test]
fn what_cannot_be_started_is_refused_with_the_numbers() {
    let refused = |words: &[&str]| {
        let ended = Run::new(words).end();
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(1), ""), "{words:?}");
        only_message(&ended).to_owned()
    };
    for (words, said) in [
        (&["-n", "5", "--hosts", "a:2,b:2", "true"][..], &["5 ranks", "4 slots", "a:2, b:2"][..]),
        (&["-n", "2", "--hosts", "a,b,c", "true"], &["2 ranks", "a, b, c"]),
        (&["-n", "4", "--nodes", "2", "--hosts", "a,b", "true"], &["2 virtual nodes", "leave out one"]),
        (&["-n", "4", "--hostfile", "/no/such/file", "true"], &["/no/such/file"]),
        (&["-n", "4", "--rsh", "rsh", "true"], &["--rsh", "--hosts"]),
        (&["-n", "2", "--hosts", "a", "--address", "nowhere0", "true"], &["\"nowhere0\"", "lo (127.0.0.1)"]),
        (&["-n", "2", "--hosts", "a", "--agent-path", "/my files/x", "true"], &["/my files/x", "--agent-path"]),
        (&["-n", "2", "-x", "=3", "true"], &["=3"]),
    ] {
        let message = refused(words);
        assert!(said.iter().all(|word| message.contains(word)), "{words:?}: {message}");
    }
    let ended = Run::new(&["--agent"]).end();
    assert_eq!(ended.code, Some(1));
    assert!(only_message(&ended).contains("no call of a launcher"), "{}", ended.stderr);
}

#[test]
fn a_directory_that_a_host_lacks_is_named() {
    let Some(hosts) = Hosts::make(2) else { return };
    // A remote shell that shows the second host another file system.
    let name = &hosts.names()[1];
    let gone = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("gone-{}", std::process::id()));
    std::fs::create_dir_all(gone.join("here")).unwrap();
    let masked = script(
        "masked",
        &format!(
            "[ \"$1\" = {name} ] || exec ip netns exec \"$@\"\nhost=$1; shift\nexec ip netns exec $host unshare -m sh -c 'cd /; mount -t tmpfs none \"{}\"; exec \"$0\" \"$@\"' \"$@\"",
            gone.display()
        ),
    );
    let run = over_with(&hosts, masked.to_str().unwrap(), 2, &[], &["true"]).in_directory(&gone.join("here"));
    let ended = run.end();
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    let message = only_message(&ended);
    assert!(
        message.contains(&format!(
            "rank 1 (on host {name}) cannot be started in the directory {}",
            gone.join("here").display()
        )),
        "{message}"
    );
    std::fs::remove_dir_all(gone).unwrap();
    std::fs::remove_file(masked).unwrap();
}

#[test]
fn a_list_may_stand_in_a_file_and_blocks_follow_it() {
    let Some(hosts) = Hosts::make(3) else { return };
    let names = hosts.names();
    let list = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("list-{}", std::process::id()));
    std::fs::write(&list, format!("# ours\n{} 1\n{}:3 # more\n{} slots=1\n", names[0], names[1], names[2])).unwrap();
    let words = ["-n", "4", "--hostfile", list.to_str().unwrap(), "--rsh", "ip netns exec", "--tag-output"];
    let words = [&words[..], &["sh", "-c", "ip netns identify $$"]].concat();
    let ended = Run::within(hosts.in_hub(env!("CARGO_BIN_EXE_armci-run")), &words).end();
    std::fs::remove_file(list).unwrap();
    let mut lines: Vec<_> = ended.stdout.lines().collect();
    lines.sort_unstable();
    let expected: Vec<_> =
        [0, 1, 1, 1].iter().enumerate().map(|(rank, host)| format!("[{rank}] {}", names[*host])).collect();
    assert_eq!(lines, expected, "{}", ended.stderr);
}

#[test]
fn ranks_of_other_launchers_know_their_place_on_hosts_too() {
    let Some(hosts) = Hosts::make(2) else { return };
    // ssh's options, if any, the host, and a command for its shell.
    let text =
        "while [ \"${1#-}\" != \"$1\" ]; do shift; done\nhost=$1; shift\nexec ip netns exec \"$host\" sh -c \"$*\"";
    let shell = script("shell", text);
    let shell = shell.to_str().unwrap();
    let list = hosts.list(2);
    let open_mpi =
        ["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "--mca", "plm_rsh_agent", shell, "-H", &list];
    let mpich = ["mpiexec.hydra", "-launcher", "ssh", "-launcher-exec", shell, "-iface", "bridge0", "-hosts", &list];
    for launcher in [&open_mpi[..], &mpich] {
        let there = std::process::Command::new(launcher[0]).arg("--version").output();
        if !there.is_ok_and(|said| said.status.success()) {
            eprintln!("SKIPPED: {} is not installed", launcher[0]);
            continue;
        }
        let program = this("ranks_know_their_place_and_exchange");
        let words = [&["60"], launcher, &["-n", "4"], &program.each_ref().map(String::as_str)].concat();
        let ended = Run::within(hosts.in_hub("timeout"), &words).acting("2").end();
        assert_eq!(ended.code, Some(0), "{}: {}{}", launcher[0], ended.stdout, ended.stderr);
        assert_eq!(ended.stdout.matches("running 1 test").count(), 4, "{}", ended.stdout);
    }
    std::fs::remove_file(shell).unwrap();
}
