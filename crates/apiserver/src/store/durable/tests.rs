//! The state is cut off at every step that the database takes on its file: after each, in the middle of each,
//! and with what was not yet on disk lost. Whatever was acknowledged before is there, and nothing is there in
//! part.

use std::{
    collections::BTreeMap,
    io,
    sync::{Arc, Mutex},
};

use redb::{StorageBackend, backends::InMemoryBackend};
use tiphys_value::json;

use super::*;

/// A step on the file.
#[derive(Clone, Debug)]
enum Step {
    Write(u64, Vec<u8>),
    Resize(u64),
    Sync,
}

/// A file in memory that remembers every step.
#[derive(Clone, Debug, Default)]
struct Recorder {
    file: Arc<Mutex<Vec<u8>>>,
    steps: Arc<Mutex<Vec<Step>>>,
}

impl Recorder {
    fn note(&self, step: Step) {
        apply(&mut self.file.lock().unwrap(), &step);
        self.steps.lock().unwrap().push(step);
    }

    fn count(&self) -> usize {
        self.steps.lock().unwrap().len()
    }
}

fn apply(file: &mut Vec<u8>, step: &Step) {
    match step {
        Step::Write(at, bytes) => {
            let end = *at as usize + bytes.len();
            if file.len() < end {
                file.resize(end, 0);
            }
            file[*at as usize..end].copy_from_slice(bytes);
        }
        Step::Resize(length) => file.resize(*length as usize, 0),
        Step::Sync => {}
    }
}

impl StorageBackend for Recorder {
    fn len(&self) -> io::Result<u64> {
        Ok(self.file.lock().unwrap().len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let file = self.file.lock().unwrap();
        let end = offset as usize + out.len();
        let part = file.get(offset as usize..end).ok_or(io::ErrorKind::UnexpectedEof)?;
        out.copy_from_slice(part);
        Ok(())
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        self.note(Step::Resize(length));
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        self.note(Step::Sync);
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.note(Step::Write(offset, data.to_vec()));
        Ok(())
    }
}

/// Names and contents at one revision.
type State = BTreeMap<String, String>;

/// What was written: the states at all revisions, and which was acknowledged after how many steps.
struct History {
    states: Vec<State>,
    acknowledged: Vec<(usize, u64)>,
    steps: Vec<Step>,
}

/// Creates, changes and removes objects, sometimes several in one batch.
fn written() -> History {
    let recorder = Recorder::default();
    let database = redb::Builder::new().create_with_backend(recorder.clone()).unwrap();
    let (journal, _) = Journal::open_database(database, Path::new("memory")).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let resource = ResourceId::new("", "configmaps");
    let (mut states, mut acknowledged) = (vec![State::new()], vec![(recorder.count(), 0)]);
    for revision in 1..=60u64 {
        let mut state = states.last().unwrap().clone();
        let name = format!("default/m-{}", revision * 7 % 11);
        let gone = revision % 5 == 0 && state.remove(&name).is_some();
        let text = format!("{revision}").repeat(1 + (revision as usize * 37) % 400);
        let object = json!({"metadata": {"resourceVersion": revision.to_string()}, "data": {"k": text}});
        if !gone {
            state.insert(name.clone(), object["data"]["k"].to_string());
        }
        let object = (!gone).then(|| Arc::new(Object::stamped(object, revision)));
        journal.append(Record::new(&resource, &name, revision, object));
        states.push(state);
        if revision % 4 != 1 {
            runtime.block_on(journal.durable(revision)).unwrap();
            acknowledged.push((recorder.count(), revision));
        }
    }
    let steps = recorder.steps.lock().unwrap().clone();
    drop(journal);
    History { states, acknowledged, steps }
}

/// What a new process finds in a file.
fn found(file: &[u8]) -> (u64, State) {
    let backend = InMemoryBackend::new();
    backend.set_len(file.len() as u64).unwrap();
    backend.write(0, file).unwrap();
    let database = redb::Builder::new().create_with_backend(backend).expect("the state can be opened again");
    let newest = prepare(&database, Path::new("memory")).unwrap();
    let stored = read_all(&database).unwrap();
    (newest, stored.into_iter().map(|(_, key, object)| (key, object["data"]["k"].to_string())).collect())
}

fn holds(history: &History, done: usize, file: &[u8], how: &str) {
    let (_, at_least) = *history.acknowledged.iter().rev().find(|(steps, _)| *steps <= done).unwrap();
    let (newest, state) = found(file);
    assert!(newest >= at_least, "{how} step {done}: {newest}, but {at_least} was acknowledged");
    assert_eq!(state, history.states[newest as usize], "{how} step {done}");
}

#[test]
fn cut_off_anywhere_nothing_acknowledged_is_lost() {
    let history = written();
    let first = history.acknowledged[0].0;
    let (mut file, mut on_disk) = (Vec::new(), Vec::new());
    let mut points = 0;
    for (done, step) in history.steps.iter().enumerate() {
        if done >= first {
            // Killed before the step: what was written is in the system's hands.
            holds(&history, done, &file, "killed before");
            points += 1;
            // Without power after it: of what is not on disk every other write is lost.
            if done % 3 == 0 {
                let mut left = on_disk.clone();
                let since =
                    history.steps[..done].iter().rev().take_while(|s| !matches!(s, Step::Sync)).count();
                let unsynced = &history.steps[done - since..done];
                let kept = unsynced
                    .iter()
                    .enumerate()
                    .filter(|(at, step)| matches!(step, Step::Resize(_)) || (at + done) % 2 == 0);
                kept.for_each(|(_, step)| apply(&mut left, step));
                holds(&history, done, &left, "without power before");
                points += 1;
            }
            // Killed in the middle of it.
            if let Step::Write(at, bytes) = step {
                let mut torn = file.clone();
                apply(&mut torn, &Step::Write(*at, bytes[..bytes.len() / 2].to_vec()));
                holds(&history, done, &torn, "killed in");
                points += 1;
            }
        }
        apply(&mut file, step);
        if matches!(step, Step::Sync) {
            on_disk.clone_from(&file);
        }
    }
    assert!(points >= 300, "{points}");
}
