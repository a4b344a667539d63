//! What `argocd-cmd-params-cm` says of the controllers; flags of the other processes mean nothing here.

use std::time::Duration;

use super::Reader;
use crate::glob;

/// Flags of the controller; `None` where none is set and the engine's own default holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ControllerParams {
    /// `application.namespaces`: globs of namespaces that may hold Applications beside the engine's own.
    pub application_namespaces: Vec<String>,
    /// `controller.sync.timeout.seconds`: when an operation is ended; zero means never.
    pub sync_timeout: Option<Duration>,
    /// `controller.sync.wave.delay.seconds`: the pause between two waves.
    pub wave_delay: Option<Duration>,
    /// `controller.self.heal.backoff.timeout.seconds`: the first pause between two self-heals.
    pub self_heal_backoff: Option<Duration>,
    /// `controller.self.heal.backoff.factor`.
    pub self_heal_factor: Option<u32>,
    /// `controller.self.heal.backoff.cap.seconds`: the longest pause.
    pub self_heal_cap: Option<Duration>,
    /// `controller.diff.server.side`: objects are compared by a dry run of the API server.
    pub server_side_diff: Option<bool>,
    /// `controller.metrics.application.labels`: labels of Applications that become labels of a metric.
    pub metric_labels: Vec<String>,
}

pub(super) fn read(reader: &mut Reader<'_>) -> ControllerParams {
    let params = ControllerParams {
        application_namespaces: reader.list("application.namespaces"),
        sync_timeout: seconds(reader, "controller.sync.timeout.seconds"),
        wave_delay: seconds(reader, "controller.sync.wave.delay.seconds"),
        self_heal_backoff: seconds(reader, "controller.self.heal.backoff.timeout.seconds"),
        self_heal_factor: count(reader, "controller.self.heal.backoff.factor"),
        self_heal_cap: seconds(reader, "controller.self.heal.backoff.cap.seconds"),
        server_side_diff: reader
            .data
            .contains_key("controller.diff.server.side")
            .then(|| reader.flag("controller.diff.server.side", false)),
        metric_labels: reader.list("controller.metrics.application.labels"),
    };
    for fault in params.application_namespaces.iter().filter_map(|pattern| glob::regex_fault(pattern)) {
        reader.fault("application.namespaces", fault);
    }
    params
}

fn count(reader: &mut Reader<'_>, key: &str) -> Option<u32> {
    let number = reader.number(key)?;
    u32::try_from(number).map_err(|_| reader.fault(key, format!("{number} is no count"))).ok()
}

fn seconds(reader: &mut Reader<'_>, key: &str) -> Option<Duration> {
    let number = reader.number(key)?;
    let number = u64::try_from(number).map_err(|_| reader.fault(key, format!("{number} is negative"))).ok();
    number.map(Duration::from_secs)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::settings::ArgoSettings;

    #[test]
    fn flags_of_the_controller_are_read_and_wrong_ones_named() {
        let pairs = [
            ("application.namespaces", "team-*, ops, /^(?!kube-)/"),
            ("controller.sync.wave.delay.seconds", "5"),
            ("controller.self.heal.backoff.factor", "-1"),
            ("controller.status.processors", "50"),
            ("applicationsetcontroller.dryrun", "true"),
            ("server.insecure", "true"),
        ];
        let map = pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        let settings = ArgoSettings::read(&BTreeMap::new(), &map);
        assert_eq!(settings.controller.application_namespaces[..2], ["team-*", "ops"]);
        assert_eq!(settings.controller.wave_delay, Some(Duration::from_secs(5)));
        assert_eq!(settings.controller.sync_timeout, None);
        assert_eq!(
            settings.unused_params,
            ["applicationsetcontroller.dryrun", "controller.status.processors"]
        );
        let faults: Vec<String> = settings.faults.iter().map(ToString::to_string).collect();
        assert_eq!(faults.len(), 2, "{faults:?}");
        assert!(
            faults[1].contains("/^(?!kube-)/ matches nothing: Tiphys knows no look-around"),
            "{faults:?}"
        );
    }
}
