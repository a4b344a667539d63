//! Reads the tails of logs.

use std::{collections::HashSet, time::Duration};

use futures::{StreamExt as _, stream};
use jiff::Timestamp;
use parking_lot::Mutex;
use tiphys_cluster::{Cluster, ClusterError, LogTail};
use tiphys_doctor::{Case, Log, Unreadable};
use tokio::time::{Instant, timeout_at};

use super::{Logs, log_choice, missing_rights::Denied, progress::Progress, refusal};

/// How many requests for logs are under way at a time.
const AT_ONCE: usize = 4;
/// How many lines are read, from the end.
const LINES: usize = 180;
/// How many bytes of these lines the API server sends, and how many of them are kept, from the end.
const BYTES: (usize, usize) = (2 * 1024 * 1024, 128 * 1024);
/// How long one log, and all of them, may take.
const TIMES: (Duration, Duration) = (Duration::from_secs(10), Duration::from_secs(60));

/// What has gone wrong so far.
#[derive(Default)]
struct Trouble {
    /// Nobody may read logs, or the cluster has none.
    ends: Option<ClusterError>,
    /// Nodes that did not answer: others of their logs are not asked for.
    nodes: HashSet<String>,
    unreadable: Vec<Unreadable>,
}

/// Adds the logs that matter to a case.
pub(super) async fn read(cluster: &Cluster, mode: Logs, case: &mut Case, denied: &mut Denied) {
    let choice = log_choice::choose(&case.objects, case.at.unwrap_or(Timestamp::UNIX_EPOCH), mode);
    let deadline = Instant::now() + TIMES.1;
    let trouble = Mutex::new(Trouble::default());
    let progress = Progress::new("logs", choice.len());
    let read = stream::iter(choice)
        .map(|wanted| read_one(cluster, wanted, &trouble, deadline))
        .buffer_unordered(AT_ONCE);
    let read = read.inspect(|_| progress.step());
    let mut logs: Vec<Log> = read.filter_map(std::future::ready).collect().await;
    logs.sort_by(|a, b| {
        (&a.namespace, &a.pod, &a.container, a.previous).cmp(&(
            &b.namespace,
            &b.pod,
            &b.container,
            b.previous,
        ))
    });
    case.logs.append(&mut logs);
    let trouble = trouble.into_inner();
    case.unreadable.extend(trouble.unreadable);
    match trouble.ends {
        Some(error) if error.is_forbidden() => denied.add_named("", "pods/log", "get"),
        Some(error) => {
            case.unreadable.push(Unreadable { what: "logs of pods".to_owned(), why: error.to_string() })
        }
        None => {}
    }
}

async fn read_one(
    cluster: &Cluster,
    wanted: log_choice::Wanted,
    trouble: &Mutex<Trouble>,
    deadline: Instant,
) -> Option<Log> {
    let lock = || trouble.lock();
    {
        let trouble = lock();
        if trouble.ends.is_some() || trouble.nodes.contains(&wanted.node) {
            return None;
        }
    }
    let log_choice::Wanted { namespace, pod, container, previous, node } = wanted;
    let tail = LogTail {
        namespace: &namespace,
        pod: &pod,
        container: &container,
        previous,
        lines: LINES,
        bytes: BYTES.0,
    };
    let error = match timeout_at(deadline, cluster.log_tail(tail, TIMES.0)).await {
        Ok(Ok(text)) => return Some(Log { text: end_of(text), namespace, pod, container, previous }),
        Ok(Err(error)) => error,
        Err(_) => {
            ClusterError::Transport(format!("{:?}, the limit for reading all logs, have passed", TIMES.1))
        }
    };
    let mut trouble = lock();
    match &error {
        ClusterError::Api { code: 403 | 405, .. } => trouble.ends = Some(error),
        // It went meanwhile, or has not run.
        ClusterError::Api { code: 400 | 404, .. } => {}
        error => {
            if trouble.nodes.insert(node.clone()) {
                let what = format!("log of Pod {namespace}/{pod}, container {container}, on node {node}");
                trouble.unreadable.push(Unreadable { what, why: refusal(error) });
            }
        }
    }
    None
}

/// The end of a log, from the start of a line on.
fn end_of(text: String) -> String {
    let Some(from) = text.len().checked_sub(BYTES.1) else { return text };
    let bytes = text.as_bytes();
    let start = bytes[from..].iter().position(|byte| *byte == b'\n').map_or(from, |at| from + at + 1);
    // A line may be longer than all that is kept.
    let start = (start..text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len());
    text[start..].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_starts_with_a_whole_line_if_it_can() {
        assert_eq!(end_of("a\nb\n".into()), "a\nb\n");
        let lines = "0123456789\n".repeat(BYTES.1 / 11 + 10);
        let end = end_of(lines);
        assert!(end.len() <= BYTES.1 && end.starts_with("0123456789\n"));
        let one = end_of("é".repeat(BYTES.1));
        assert!(one.len() <= BYTES.1 && one.chars().all(|c| c == 'é'));
    }
}
