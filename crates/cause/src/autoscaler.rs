//! What the autoscaler's controller says about targets that it cannot scale (Kubernetes, "Horizontal Pod
//! Autoscaling", conditions `AbleToScale` and `ScalingActive`).

use crate::pattern::pattern;

/// Why an autoscaler does not scale.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScaleFault {
    /// What it scales is not there.
    TargetAbsent,
    /// A container requests nothing of the resource that its use is compared with.
    NoRequest {
        /// The resource, such as `cpu`.
        resource: String,
    },
}

pattern!(NO_REQUEST, r"(?i)missing request for ([a-z0-9./-]+)");
pattern!(ABSENT, r"(?i)not found|could not find");

/// Reads the reason and message of a condition that is False; `None` if it tells of something else.
#[must_use]
pub fn scale_fault(reason: &str, message: &str) -> Option<ScaleFault> {
    if reason == "FailedGetScale" {
        return ABSENT.is_match(message).then_some(ScaleFault::TargetAbsent);
    }
    let resource = NO_REQUEST.captures(message)?[1].to_ascii_lowercase();
    Some(ScaleFault::NoRequest { resource })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_that_is_absent_and_one_that_requests_nothing() {
        let absent = r#"the HPA controller was unable to get the target's current scale: deployments.apps "web" not found"#;
        assert_eq!(scale_fault("FailedGetScale", absent), Some(ScaleFault::TargetAbsent));
        let unasked = "the HPA was unable to compute the replica count: failed to get cpu utilization: missing request for \
            cpu in container web of Pod web-1";
        let cpu = ScaleFault::NoRequest { resource: "cpu".into() };
        assert_eq!(scale_fault("FailedGetResourceMetric", unasked), Some(cpu));
        assert_eq!(scale_fault("FailedGetScale", "forbidden"), None);
        assert_eq!(
            scale_fault("FailedGetResourceMetric", "did not receive metrics for any ready pods"),
            None
        );
    }
}
