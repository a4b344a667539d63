//! What the scheduler says about a pod that it cannot place.

use crate::pattern::{has_any, pattern};

/// Why some nodes do not take a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Obstacle {
    /// The pod's selector or affinity matches none of them.
    Selector,
    /// A taint that the pod does not tolerate.
    Taint(String),
    /// Too little of a resource is free.
    Insufficient(String),
    /// Topology spread or anti-affinity.
    Spread,
    /// They are cordoned.
    Cordoned,
    /// Their ports are taken.
    HostPort,
    /// A volume is bound to other nodes.
    VolumeZone,
    /// A claim is not bound, and nothing will bind it later.
    ClaimUnbound,
    /// A claim does not exist; the name if it is told.
    ClaimMissing(Option<String>),
    /// No volume fits a claim that waits for the pod.
    NoVolume,
    /// Too many volumes are attached.
    VolumeLimit,
    /// Something else.
    Other(String),
}

/// One reason and the number of nodes that it keeps away.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// The nodes of the cluster.
    pub nodes: Option<u32>,
    /// Each obstacle with the number of its nodes.
    pub obstacles: Vec<(u32, Obstacle)>,
}

pattern!(TAINT, r"taints? \{([^}:]+)");
pattern!(CLAIM, r#"persistentvolumeclaim "([^"]+)" not found"#);
pattern!(TOTAL, r"^\s*\d+/(\d+) nodes are available");

/// Reads the message of `FailedScheduling` or of the condition `PodScheduled`.
#[must_use]
pub fn placement(message: &str) -> Placement {
    let nodes = TOTAL.captures(message).and_then(|it| it[1].parse().ok());
    let body = message.split("preemption:").next().unwrap_or(message);
    let body = body.split_once("nodes are available:").map_or(body, |(_, rest)| rest);
    let mut obstacles = Vec::new();
    for part in parts(body) {
        let (count, words) = part.split_once(' ').map_or((1, part), |(count, words)| {
            count.parse().map_or((nodes.unwrap_or(1), part), |count: u32| (count, words))
        });
        if let Some(obstacle) = obstacle(words) {
            obstacles.push((count, obstacle));
        }
    }
    Placement { nodes, obstacles }
}

/// The parts of a list; commas inside of braces do not part.
fn parts(text: &str) -> Vec<&str> {
    let (mut depth, mut start, mut found) = (0_i32, 0, Vec::new());
    for (at, c) in text.char_indices() {
        match c {
            '{' | '(' => depth += 1,
            '}' | ')' => depth -= 1,
            ',' if depth <= 0 => {
                found.push(text[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    found.push(text[start..].trim().trim_end_matches('.'));
    found.retain(|part| !part.is_empty());
    found
}

/// Words for nodes where a volume cannot be used; newer schedulers have their own.
const VOLUME_ELSEWHERE: &[&str] =
    &["volume node affinity conflict", "no available volume zone", "persistentvolume's node affinity"];

fn obstacle(words: &str) -> Option<Obstacle> {
    let low = words.to_ascii_lowercase();
    let found = if let Some(it) = TAINT.captures(words) {
        Obstacle::Taint(it[1].trim().to_owned())
    } else if low.contains("taint") {
        Obstacle::Taint(String::new())
    } else if let Some((_, resource)) = words.split_once("Insufficient ") {
        Obstacle::Insufficient(resource.trim_end_matches('.').to_owned())
    } else if low.contains("enough free storage") {
        Obstacle::Insufficient("storage".to_owned())
    } else if low.contains("cannot allocate all claims") {
        Obstacle::Insufficient("devices".to_owned())
    } else if low.contains("too many pods") {
        Obstacle::Insufficient("pods".to_owned())
    } else if has_any(&low, &["topology spread", "anti-affinity", "pod affinity rules", "pod affinity"])
        && !low.contains("node affinity")
    {
        Obstacle::Spread
    } else if has_any(&low, VOLUME_ELSEWHERE) {
        Obstacle::VolumeZone
    } else if has_any(
        &low,
        &["node affinity/selector", "node affinity", "node selector", "node(s) didn't match"],
    ) && !low.contains("ports")
    {
        Obstacle::Selector
    } else if low.contains("unschedulable") {
        Obstacle::Cordoned
    } else if low.contains("free ports") {
        Obstacle::HostPort
    } else if low.contains("unbound immediate persistentvolumeclaims") {
        Obstacle::ClaimUnbound
    } else if let Some(it) = CLAIM.captures(words) {
        Obstacle::ClaimMissing(Some(it[1].to_owned()))
    } else if low.contains("persistent volumes to bind") {
        Obstacle::NoVolume
    } else if low.contains("max volume count") {
        Obstacle::VolumeLimit
    } else if low.is_empty()
        || low.starts_with("no preemption victims")
        || low.starts_with("preemption is not helpful")
    {
        return None;
    } else {
        Obstacle::Other(words.to_owned())
    };
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_of_several_obstacles() {
        let read = placement(
            "0/6 nodes are available: 1 node(s) had untolerated taint {gpu: true}, 2 Insufficient cpu, 3 node(s) didn't match Pod's node affinity/selector. preemption: 0/6 nodes are available: 6 Preemption is not helpful for scheduling.",
        );
        assert_eq!(read.nodes, Some(6));
        assert_eq!(
            read.obstacles,
            [
                (1, Obstacle::Taint("gpu".into())),
                (2, Obstacle::Insufficient("cpu".into())),
                (3, Obstacle::Selector)
            ]
        );
    }

    #[test]
    fn claims() {
        let read = placement(
            "0/3 nodes are available: pod has unbound immediate PersistentVolumeClaims. preemption: 0/3",
        );
        assert_eq!(read.obstacles, [(3, Obstacle::ClaimUnbound)]);
        let read =
            placement("0/4 nodes are available: 4 node(s) didn't match PersistentVolume's node affinity.");
        assert_eq!(read.obstacles, [(4, Obstacle::VolumeZone)]);
        let read = placement("0/3 nodes are available: 3 node(s) did not have enough free storage.");
        assert_eq!(read.obstacles, [(3, Obstacle::Insufficient("storage".into()))]);
        let read = placement("0/3 nodes are available: persistentvolumeclaim \"data\" not found.");
        assert_eq!(read.obstacles, [(3, Obstacle::ClaimMissing(Some("data".into())))]);
    }
}
