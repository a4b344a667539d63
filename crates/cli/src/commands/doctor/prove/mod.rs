//! Whether a remedy helps: it is tried out on a copy of the cluster under virtual time.
//!
//! The copy is made of what was saved. Rules say how its programs, images and nodes were seen to behave. A
//! root is proved if the copy keeps what is broken without the repair, all of it clears with the repair, and
//! nothing else breaks.

mod copy;
mod repair;

use std::{
    collections::BTreeSet,
    sync::{
        Once,
        mpsc::{self, RecvTimeoutError},
    },
    time::{Duration, Instant},
};

use tiphys_doctor::{Case, Diagnosis, Object, Proof, Root};
use tiphys_stage::virtual_runtime;

use copy::Copy;
use repair::repair;

/// How many roots are tried out, the surest first.
const MOST_ROOTS: usize = 3;
/// How long all copies together may take.
const LONGEST: Duration = Duration::from_secs(20);
/// Name and stack of the thread on which copies live: objects may be nested deep.
const WORKER: &str = "proof";
const STACK: usize = 16 * 1024 * 1024;
/// Kinds whose health a copy shows.
const SHOWN: [&str; 3] = ["Deployment", "StatefulSet", "DaemonSet"];

/// Tries out the remedies of what is asserted, and writes down what came of it. A state may be anything: a
/// copy that breaks off or does not end proves nothing, and does no harm.
pub(super) fn prove(diagnosis: &mut Diagnosis, case: &Case) {
    if !diagnosis.causes.iter().any(|root| root.confidence >= 0.5) {
        return;
    }
    let (send, proofs) = mpsc::channel();
    let (roots, state) = (diagnosis.causes.clone(), case.clone());
    hide_what_breaks_off();
    let work = move || {
        let mut copy = None;
        for (at, root) in roots.iter().enumerate() {
            let proof = proof(at, root, &state, &mut copy);
            // Nobody waits any more.
            if send.send((at, proof)).is_err() {
                return;
            }
        }
    };
    let worker = std::thread::Builder::new().name(WORKER.to_owned()).stack_size(STACK).spawn(work);
    let end = Instant::now() + LONGEST;
    let mut why = "a copy of the cluster took too long";
    while worker.is_ok() {
        match proofs.recv_timeout(end.saturating_duration_since(Instant::now())) {
            Ok((at, proof)) => diagnosis.causes[at].proof = Some(proof),
            Err(RecvTimeoutError::Timeout) => break,
            Err(RecvTimeoutError::Disconnected) => {
                why = "a copy of the cluster cannot be made of this state";
                break;
            }
        }
    }
    for root in diagnosis.causes.iter_mut().filter(|root| root.proof.is_none()) {
        root.proof = Some(Proof { is_proved: false, text: why.to_owned() });
    }
}

/// Keeps silent about a copy that breaks off: that it proves nothing is said.
fn hide_what_breaks_off() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let others = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if std::thread::current().name() != Some(WORKER) {
                others(panic);
            }
        }));
    });
}

fn proof(at: usize, root: &Root, case: &Case, copy: &mut Option<Result<Copy, String>>) -> Proof {
    let tried = match at < MOST_ROOTS && root.confidence >= 0.5 {
        true => try_out(root, case, copy),
        false => Err("only the surest causes are tried out".to_owned()),
    };
    match tried {
        Ok(count) => Proof {
            is_proved: true,
            text: format!(
                "in a copy of the cluster the repair clears all of the workloads that broke ({count}), and breaks nothing"
            ),
        },
        Err(text) => Proof { is_proved: false, text },
    }
}

/// Tries out the repair of one root; how many workloads it clears, or why that is not proved.
fn try_out(root: &Root, case: &Case, copy: &mut Option<Result<Copy, String>>) -> Result<usize, String> {
    let repair = repair(root, case)?;
    let mut broken = broken_by(root, case);
    if broken.is_empty() {
        return Err("nothing that depends on it can be seen in a copy".to_owned());
    }
    let copy =
        copy.get_or_insert_with(|| in_virtual_time(Copy::make(case))).as_ref().map_err(Clone::clone)?;
    // What is only assumed to be well proves nothing by being so.
    if repair.steps.is_empty() && !repair.is_judged {
        let assumed = copy.assumed_by(&repair);
        broken.retain(|object| !assumed.contains(object));
        if broken.is_empty() {
            return Err(
                "a copy of the cluster would only assume that it runs, and nothing else broke".to_owned()
            );
        }
    }
    let kept: Vec<&Object> = broken.iter().filter(|object| !copy.red.contains(*object)).collect();
    if !kept.is_empty() {
        return Err(format!(
            "a copy of the cluster does not show what is wrong with {}",
            object_names(&kept)
        ));
    }
    let red = in_virtual_time(copy.repaired(&repair))?;
    let left: Vec<&Object> = broken.intersection(&red).collect();
    if !left.is_empty() {
        return Err(format!("in a copy of the cluster {} stays broken after it", object_names(&left)));
    }
    let new: Vec<&Object> = red.difference(&copy.red).collect();
    if !new.is_empty() {
        return Err(format!("in a copy of the cluster it breaks {}", object_names(&new)));
    }
    Ok(broken.len())
}

/// The workloads that are broken because of a root.
fn broken_by(root: &Root, case: &Case) -> BTreeSet<Object> {
    let red = copy::red(case.objects.iter());
    let told = root.consequences.iter().map(|it| &it.object).chain([&root.object]);
    told.filter(|object| SHOWN.contains(&object.kind.as_str()) && red.contains(*object)).cloned().collect()
}

fn object_names(objects: &[&Object]) -> String {
    match objects {
        [] => String::new(),
        [only] => only.to_string(),
        [first, rest @ ..] => format!("{first} and {} more", rest.len()),
    }
}

fn in_virtual_time<T>(work: impl Future<Output = Result<T, String>>) -> Result<T, String> {
    let runtime = virtual_runtime().map_err(|error| format!("the system gives no timers: {error}"))?;
    runtime.block_on(work)
}

#[cfg(test)]
mod tests;
