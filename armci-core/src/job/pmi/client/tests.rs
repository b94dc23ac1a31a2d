//! The client against launchers that are played by a thread: a good one, and bad ones.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Barrier, Mutex};
use std::thread;

use super::*;

type Store = Arc<Mutex<HashMap<String, String>>>;

/// Answers one rank as a launcher would, in Slurm's order of words or in Hydra's.
fn serve(line: UnixStream, store: &Store, barrier: &Barrier) {
    let mut answers = line.try_clone().unwrap();
    for question in BufReader::new(line).lines() {
        let question = question.unwrap();
        let word = |name: &str| {
            let mut words = question.split(' ').filter_map(|word| word.split_once('='));
            words.find(|(known, _)| *known == name).map(|(_, value)| value.to_owned()).unwrap_or_default()
        };
        assert!(word("value").len() < 1024, "{question}");
        assert!(word("key").len() < 64, "{question}");
        let answer = match word("cmd").as_str() {
            "init" => "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0".to_owned(),
            "get_maxes" => "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1024".into(),
            "get_my_kvsname" => "cmd=my_kvsname rc=0 kvsname=space".into(),
            "barrier_in" => {
                barrier.wait();
                "cmd=barrier_out rc=0".into()
            }
            "put" => {
                assert!(store.lock().unwrap().insert(word("key"), word("value")).is_none());
                "cmd=put_result rc=0 msg=success".into()
            }
            "get" => match store.lock().unwrap().get(&word("key")) {
                Some(value) => format!("cmd=get_result value={value} rc=0"),
                None => format!("cmd=get_result rc=-1 msg=key_{}_not_found value=unknown", word("key")),
            },
            other => panic!("{other}"),
        };
        answers.write_all(format!("{answer}\n").as_bytes()).unwrap();
    }
}

#[test]
fn values_of_any_length_travel() {
    let (store, barrier) = (Store::default(), Arc::new(Barrier::new(2)));
    let (store, barrier) = (&store, &barrier);
    thread::scope(|scope| {
        for rank in 0..2 {
            let (ours, theirs) = UnixStream::pair().unwrap();
            scope.spawn(move || serve(theirs, store, barrier));
            scope.spawn(move || {
                let mut client = Client::over(ours.as_fd(), rank, 2).unwrap();
                drop(ours);
                for (key, length) in [0, 1, 499, 500, 501, 1024, 5000].into_iter().enumerate() {
                    let value = |rank: usize| (0..length).map(|byte| (byte + rank) as u8).collect::<Vec<_>>();
                    client.put(key as u64, &value(rank)).unwrap();
                    client.fence().unwrap();
                    assert_eq!(client.get(1 - rank, key as u64).unwrap(), value(1 - rank));
                }
                let missing = client.get(0, 99).unwrap_err().to_string();
                assert!(missing.contains("refused") && missing.contains("not_found"), "{missing}");
                assert!(client.put(9, &vec![0; LARGEST + 1]).is_err());
            });
        }
    });
}

/// What a client says of a launcher that answers with these bytes, one string for each question, and then hangs up.
fn complaint(answers: &'static [&'static [u8]]) -> String {
    let (ours, mut theirs) = UnixStream::pair().unwrap();
    let launcher = thread::spawn(move || {
        let mut questions = BufReader::new(theirs.try_clone().unwrap());
        for answer in answers {
            questions.read_line(&mut String::new()).unwrap();
            // Whoever has heard enough hangs up.
            let _ = theirs.write_all(answer);
        }
    });
    let complaint = Client::over(ours.as_fd(), 0, 1).and_then(|mut client| client.get(0, 0)).unwrap_err().to_string();
    drop(ours);
    launcher.join().unwrap();
    complaint
}

const INIT: &[u8] = b"cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n";
const MAXES: &[u8] = b"cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1024\n";
const NAME: &[u8] = b"cmd=my_kvsname kvsname=space\n";
const ENDLESS: &[u8] = &[b'x'; 100 << 10];

#[test]
fn malformed_answers_are_errors_that_show_them() {
    for (answers, wanted) in [
        (&[] as &[&[u8]], "hung up before it answered \"cmd=init"),
        (&[b"cmd=response_to_i"], "hung up before it answered \"cmd=init"),
        (&[b"cmd=response_to_init rc=-1 pmi_version=2\n"], "refused \"cmd=init"),
        (&[b"HTTP/1.1 400 Bad Request\r\n"], "\"HTTP/1.1 400 Bad Request\", which is not PMI-1"),
        (&[b"\n"], "answered \"cmd=init pmi_version=1 pmi_subversion=1\" with something else"),
        (&[b"\xff\xfe\n"], "answered in no text"),
        (&[ENDLESS], "without an end of line: \"xxxx"),
        (&[INIT, b"cmd=maxes vallen_max=20\n"], "values of 20 bytes at most"),
        (&[INIT, b"cmd=maxes vallen_max=0\n"], "values of 0 bytes at most"),
        (&[INIT, MAXES, b"cmd=my_kvsname\n"], "answered without kvsname"),
        (&[INIT, MAXES, NAME, b"cmd=get_result rc=0\n"], "answered without value"),
        (&[INIT, MAXES, NAME, b"cmd=get_result rc=0 value=x\n"], "rank 0 put \"x\""),
        (&[INIT, MAXES, NAME, b"cmd=get_result rc=0 value=99999999999-00\n"], "rank 0 put"),
        (&[INIT, MAXES, NAME, b"cmd=get_result rc=0 value=1-0\n"], "rank 0 put"),
        (&[INIT, MAXES, NAME, b"cmd=get_result rc=0 value=1-0000\n"], "rank 0 put"),
        (&[INIT, MAXES, NAME, b"cmd=get_result rc=0 value=9-00\n", b"cmd=get_result rc=0 value=\n"], "rank 0 put"),
        (&[INIT, MAXES, NAME, b"cmd=get_result rc=0 value=9-00\n"], "hung up before it answered \"cmd=get"),
    ] {
        let complaint = complaint(answers);
        assert!(complaint.contains(wanted), "{complaint:?} should contain {wanted:?}");
        assert!(complaint.len() < 600, "{complaint}");
    }
}

#[test]
fn an_answer_is_read_to_its_end_and_no_further() {
    let (ours, mut theirs) = UnixStream::pair().unwrap();
    theirs.write_all(b"cmd=a\ncmd=b x=1\n").unwrap();
    ask(&ours, "cmd=1", "a").unwrap();
    assert_eq!(ask(&ours, "cmd=2", "b").unwrap().word("x"), Some("1"));
}

#[test]
fn to_abort_is_to_say_so() {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let client = Client { socket: Arc::new(ours.into()), rank: 0, size: 1, store: String::new(), piece: 1 };
    client.aborter().abort(7, "no more");
    drop(client);
    let lines: Vec<_> = BufReader::new(theirs).lines().map(|line| line.unwrap()).collect();
    assert_eq!(lines, ["cmd=abort exitcode=7"]);
}
