//! Several engines on one cluster: each Application is written by one of them at a time, whatever becomes of
//! the others.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tiphys_apiserver::{ApiServer, ApiServerOptions};
use tiphys_cluster::Cluster;
use tiphys_controller::{Controller, Destinations, Lost, Opener, Replica, Share};
use tiphys_stage::request_faults::{Faults, RequestFault};
use tiphys_value::{ObjectExt, Value, json};
use tokio::{sync::oneshot, task::JoinHandle, time::Instant};

use crate::stage::{APPLICATION, CONFIG_MAP, ENGINE, Stage, application, config_map, is_green};

/// Within which time somebody else goes on.
const TAKEOVER: Duration = Duration::from_secs(20);

/// A write of one replica to an Application, or to what it wants.
#[derive(Clone, Debug)]
struct Write {
    at: Instant,
    replica: String,
    app: String,
    path: String,
}

/// What all replicas wrote, and what each of them thought of itself at that moment.
#[derive(Clone, Default)]
struct Record(Arc<Mutex<RecordState>>);

#[derive(Default)]
struct RecordState {
    writes: Vec<Write>,
    shares: BTreeMap<String, Arc<Share>>,
    apps: BTreeMap<String, Value>,
    faults: Vec<String>,
}

impl Record {
    /// Notes a request of a replica. Who has each Application is asked of all replicas at this very moment.
    fn note(&self, replica: &str, method: &str, path: &str) {
        if method == "GET" || path.contains("dryRun=All") {
            return;
        }
        let mut state = self.0.lock().unwrap();
        let path = path.split('?').next().unwrap().to_owned();
        let Some(app) = app_of(&path) else { return };
        let Some(object) = state.apps.get(&app) else { return };
        let may: Vec<&String> =
            state.shares.iter().filter(|(_, share)| share.may_write(object)).map(|(name, _)| name).collect();
        if may != [replica] {
            let fault = format!("{replica} writes {path}, and {may:?} may");
            state.faults.push(fault);
        }
        state.writes.push(Write { at: Instant::now(), replica: replica.to_owned(), app, path });
    }

    fn writes_of(&self, app: &str) -> Vec<Write> {
        self.0.lock().unwrap().writes.iter().filter(|write| write.app == app).cloned().collect()
    }

    /// Who has written each Application, one after the other.
    fn writers(&self, app: &str) -> Vec<String> {
        let mut writers: Vec<String> = self.writes_of(app).into_iter().map(|write| write.replica).collect();
        writers.dedup();
        writers
    }

    fn assert_no_double_write(&self) {
        let state = self.0.lock().unwrap();
        assert!(!state.writes.is_empty());
        assert_eq!(state.faults, [] as [String; 0]);
    }
}

/// The Application that a written object is, or belongs to: each has a namespace of its own name.
fn app_of(path: &str) -> Option<String> {
    let mut parts = path.split('/').skip_while(|part| *part != "namespaces").skip(1);
    match (parts.next()?, parts.next(), parts.next()) {
        (ENGINE, Some("applications"), Some(name)) => Some(name.to_owned()),
        (ENGINE, ..) => None,
        (namespace, ..) => Some(namespace.to_owned()),
    }
}

/// One replica at work.
struct Running {
    controller: Controller,
    share: Arc<Share>,
    is_cut_off: Arc<AtomicBool>,
    leave: oneshot::Sender<()>,
    keeping: JoinHandle<Result<Replica, Lost>>,
}

struct Fleet {
    stage: Stage,
    record: Record,
    running: BTreeMap<String, Running>,
    apps: Vec<String>,
    started: usize,
    /// Other clusters, by their addresses.
    others: BTreeMap<String, Cluster>,
}

impl Fleet {
    async fn new(apps: usize) -> Self {
        let apps: Vec<String> = (0..apps).map(|number| format!("app-{number}")).collect();
        let files: Vec<(String, String)> =
            apps.iter().map(|app| (format!("{app}/one.yaml"), config_map("one", "1"))).collect();
        let files: Vec<(&str, &str)> =
            files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
        let stage = Stage::idle(&files, |_| {}).await;
        let record = Record::default();
        for app in &apps {
            record.0.lock().unwrap().apps.insert(app.clone(), application(app, app));
        }
        Self { stage, record, running: BTreeMap::new(), apps, started: 0, others: BTreeMap::new() }
    }

    async fn apply_apps(&self) {
        for app in &self.apps {
            self.stage.apply(application(app, app)).await;
        }
    }

    /// Starts a replica as a process would be: under a new name.
    async fn start(&mut self) -> String {
        self.started += 1;
        let name = format!("replica-{}", self.started);
        let faults = Faults::logging();
        let is_cut_off = Arc::new(AtomicBool::new(false));
        let (record, cut, own) = (self.record.clone(), is_cut_off.clone(), name.clone());
        faults.plan(move |method, path, _| {
            if cut.load(Ordering::SeqCst) {
                return Some(RequestFault::Unreachable);
            }
            record.note(&own, method, path);
            None
        });
        let cluster = self.stage.reached_by(&faults);
        cluster.discover().await.unwrap();
        let mut replica = Replica::join(&cluster, ENGINE, &name, |_| {}).await.unwrap();
        let share = replica.share();
        self.record.0.lock().unwrap().shares.insert(name.clone(), share.clone());
        let (leave, left) = oneshot::channel();
        let keeping = tokio::spawn(async move {
            tokio::select! {
                lost = replica.keep() => Err(lost),
                _ = left => Ok(replica),
            }
        });
        let others = self.others.clone();
        let controller = self.stage.start_replica(cluster, share.clone(), |settings| {
            if !others.is_empty() {
                settings.destinations = Destinations::InCluster;
                settings.opener = Some(Opener::new(move |server| others.get(server).cloned()));
            }
        });
        let controller = controller.await;
        self.running.insert(name.clone(), Running { controller, share, is_cut_off, leave, keeping });
        name
    }

    /// Ends a replica as SIGKILL would.
    fn kill(&mut self, name: &str) {
        let Running { controller, keeping, is_cut_off, .. } = self.running.remove(name).unwrap();
        is_cut_off.store(true, Ordering::SeqCst);
        keeping.abort();
        drop(controller);
        self.record.0.lock().unwrap().shares.remove(name);
    }

    /// Ends a replica as SIGTERM would.
    async fn stop(&mut self, name: &str) {
        let Running { controller, share, leave, keeping, .. } = self.running.remove(name).unwrap();
        assert!(share.finish(Duration::from_secs(60)).await);
        leave.send(()).unwrap();
        keeping.await.unwrap().expect("it had its Lease").leave().await;
        drop(controller);
        self.record.0.lock().unwrap().shares.remove(name);
    }

    fn cut_off(&self, name: &str, is_cut_off: bool) {
        self.running[name].is_cut_off.store(is_cut_off, Ordering::SeqCst);
    }

    /// Waits until a replica has noticed that others have taken over, and ends it as its process would.
    async fn until_lost(&mut self, name: &str) {
        let Running { controller, keeping, leave: _still_there, .. } = self.running.remove(name).unwrap();
        let lost = keeping.await.unwrap().err();
        assert_eq!(lost, Some(Lost::Expired), "{name}");
        drop(controller);
        self.record.0.lock().unwrap().shares.remove(name);
    }

    fn edit(&self, value: &str) {
        for app in &self.apps {
            let path = format!("{app}/one.yaml");
            self.stage.write(&path, &config_map("one", value));
            self.running.values().for_each(|replica| replica.controller.changed(std::slice::from_ref(&path)));
        }
    }

    /// Waits until all Applications are as the last edit wants them, and nothing runs.
    async fn until_all(&self, value: &str) {
        self.stage
            .until("all are as they should be", async || {
                let apps = self.stage.list(APPLICATION).await;
                let objects = self.stage.list(CONFIG_MAP).await;
                let current = objects.iter().filter(|object| object["data"]["key"] == value).count();
                let green = apps.iter().filter(|app| is_green(app)).count();
                (green == self.apps.len() && current == self.apps.len()).then_some(())
            })
            .await;
    }

    /// Every Application was synced exactly so often.
    async fn assert_synced(&self, times: u64) {
        for app in self.stage.list(APPLICATION).await {
            let history = app["status"]["history"].as_array().unwrap();
            let last = history.last().unwrap()["id"].as_u64().unwrap();
            assert_eq!(last + 1, times, "{}: {history:#?}", app.name());
        }
    }

    /// How many Applications each replica has.
    fn shares(&self) -> BTreeMap<String, usize> {
        let apps = &self.record.0.lock().unwrap().apps;
        let count = |share: &Share| apps.values().filter(|app| share.may_write(app)).count();
        self.running.iter().map(|(name, replica)| (name.clone(), count(&replica.share))).collect()
    }

    /// Waits until every Application has a replica, and the shares are no longer changed.
    async fn until_divided(&self, replicas: usize) {
        let mut stable = (BTreeMap::new(), Instant::now());
        let began = Instant::now();
        loop {
            let shares = self.shares();
            let is_whole = shares.values().sum::<usize>() == self.apps.len()
                && shares.values().filter(|count| **count > 0).count() == replicas;
            if !is_whole || stable.0 != shares {
                stable = (shares, Instant::now());
            } else if stable.1.elapsed() > Duration::from_secs(12) {
                return;
            }
            assert!(began.elapsed() < Duration::from_secs(300), "{:?}", self.shares());
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn three_replicas_have_each_application_once() {
    let mut fleet = Fleet::new(30).await;
    fleet.apply_apps().await;
    for _ in 0..3 {
        fleet.start().await;
    }
    fleet.until_divided(3).await;
    fleet.edit("2");
    fleet.until_all("2").await;
    fleet.record.assert_no_double_write();
    let last: BTreeSet<String> =
        fleet.apps.iter().filter_map(|app| fleet.record.writers(app).pop()).collect();
    assert_eq!(last.len(), 3, "each has worked: {:?}", fleet.shares());
    for app in &fleet.apps {
        let writers = fleet.record.writers(app);
        assert!(writers.len() <= 3, "{app}: {writers:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_killed_replica_had_is_taken_over_in_time() {
    let mut fleet = Fleet::new(30).await;
    fleet.apply_apps().await;
    for _ in 0..3 {
        fleet.start().await;
    }
    fleet.until_divided(3).await;
    fleet.until_all("1").await;
    let killed = fleet.running.keys().next().unwrap().clone();
    fleet.kill(&killed);
    let began = Instant::now();
    fleet.edit("2");
    fleet.until_all("2").await;
    assert!(began.elapsed() < TAKEOVER, "{:?}", began.elapsed());
    fleet.record.assert_no_double_write();
    fleet.assert_synced(2).await;
}

#[tokio::test(start_paused = true)]
async fn what_a_replica_leaves_is_taken_over_at_once() {
    let mut fleet = Fleet::new(20).await;
    fleet.apply_apps().await;
    fleet.start().await;
    let leaving = fleet.start().await;
    fleet.until_divided(2).await;
    fleet.until_all("1").await;
    fleet.stop(&leaving).await;
    let began = Instant::now();
    fleet.edit("2");
    fleet.until_all("2").await;
    assert!(began.elapsed() < Duration::from_secs(6), "{:?}", began.elapsed());
    fleet.record.assert_no_double_write();
    fleet.assert_synced(2).await;
    let leases = fleet.stage.names(("coordination.k8s.io/v1", "Lease"), ENGINE).await;
    assert_eq!(leases.len(), 2, "its own is gone: {leases:?}");
}

#[tokio::test(start_paused = true)]
async fn a_replica_that_was_cut_off_writes_nothing_when_it_is_back() {
    let mut fleet = Fleet::new(30).await;
    fleet.apply_apps().await;
    for _ in 0..3 {
        fleet.start().await;
    }
    fleet.until_divided(3).await;
    fleet.until_all("1").await;
    let lost = fleet.running.keys().next().unwrap().clone();
    fleet.cut_off(&lost, true);
    let began = Instant::now();
    fleet.edit("2");
    fleet.until_all("2").await;
    assert!(began.elapsed() < TAKEOVER, "{:?}", began.elapsed());
    fleet.cut_off(&lost, false);
    fleet.until_lost(&lost).await;
    fleet.start().await;
    fleet.until_divided(3).await;
    fleet.edit("3");
    fleet.until_all("3").await;
    fleet.record.assert_no_double_write();
    fleet.assert_synced(3).await;
}

/// The Lease of one that was only out of reach for a moment is its own still.
#[tokio::test(start_paused = true)]
async fn a_short_interruption_costs_nobody_anything() {
    let mut fleet = Fleet::new(20).await;
    fleet.apply_apps().await;
    fleet.start().await;
    let slow = fleet.start().await;
    fleet.until_divided(2).await;
    fleet.until_all("1").await;
    let shares = fleet.shares();
    fleet.cut_off(&slow, true);
    tokio::time::sleep(Duration::from_secs(8)).await;
    assert!(!fleet.record.0.lock().unwrap().shares[&slow].may_write(&application("app-0", "app-0")));
    fleet.cut_off(&slow, false);
    fleet.until_divided(2).await;
    assert_eq!(fleet.shares(), shares);
    // Nor does one that nobody was spared.
    fleet.running.keys().for_each(|name| fleet.cut_off(name, true));
    tokio::time::sleep(Duration::from_secs(120)).await;
    fleet.running.keys().for_each(|name| fleet.cut_off(name, false));
    fleet.until_divided(2).await;
    assert_eq!(fleet.shares(), shares);
    fleet.edit("2");
    fleet.until_all("2").await;
    fleet.record.assert_no_double_write();
    fleet.assert_synced(2).await;
}

#[tokio::test(start_paused = true)]
async fn an_operation_that_is_handed_over_is_not_begun_again() {
    let mut fleet = Fleet::new(12).await;
    let waits = "apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: waits\n  annotations: {argocd.argoproj.io/hook: PreSync}\n\
        spec:\n  suspend: true\n  template: {spec: {restartPolicy: Never, containers: [{name: a, image: a}]}}\n";
    for app in &fleet.apps {
        fleet.stage.write(&format!("{app}/hook.yaml"), waits);
    }
    fleet.apply_apps().await;
    fleet.start().await;
    let running = |app: &Value| app.str_at(&["status", "operationState", "phase"]) == Some("Running");
    for app in &fleet.apps {
        fleet.stage.until_app(app, |object| running(object)).await;
    }
    let begun = async || {
        let apps = fleet.stage.list(APPLICATION).await;
        apps.iter()
            .map(|app| (app.name().to_owned(), app["status"]["operationState"]["startedAt"].clone()))
            .collect::<BTreeMap<_, _>>()
    };
    let before = begun().await;
    fleet.stage.pass(Duration::from_secs(10)).await;
    assert_eq!(before, begun().await);
    let second = fleet.start().await;
    fleet.until_divided(2).await;
    let taken: Vec<&String> = fleet
        .apps
        .iter()
        .filter(|app| fleet.running[&second].share.may_write(&application(app, app)))
        .collect();
    assert!(!taken.is_empty());
    for app in &fleet.apps {
        let job = ("batch/v1", "Job");
        fleet.stage.patch(job, app, "waits", json!({"spec": {"suspend": false}})).await;
    }
    fleet.until_all("1").await;
    let after = fleet.stage.list(APPLICATION).await;
    for app in &after {
        assert_eq!(app["status"]["operationState"]["startedAt"], before[app.name()], "{}", app.name());
    }
    fleet.record.assert_no_double_write();
    fleet.assert_synced(1).await;
}

/// A Git host tells one replica of a push: that one asks the others, by a request that anybody may make.
#[tokio::test(start_paused = true)]
async fn a_push_that_one_replica_hears_of_reaches_all() {
    let mut fleet = Fleet::new(20).await;
    fleet.apply_apps().await;
    let first = fleet.start().await;
    fleet.start().await;
    fleet.until_divided(2).await;
    fleet.until_all("1").await;
    let theirs = fleet.apps.len() - fleet.shares()[&first];
    let body = json!({"repository": {"html_url": "https://git.example.com/acme/shop"}}).to_string();
    let header = |name: &str| (name == "x-github-event").then(|| "push".to_owned());
    let heard = fleet.running[&first].controller.heard(&header, body.as_bytes()).unwrap();
    assert_eq!(heard, fleet.apps.len());
    fleet.stage.pass(Duration::from_secs(5)).await;
    // These alone were written by one that does not have them.
    assert_eq!(fleet.record.0.lock().unwrap().faults.len(), theirs);
    for app in fleet.stage.list(APPLICATION).await {
        assert_eq!(app.annotation("argocd.argoproj.io/refresh"), None, "{} was looked at", app.name());
    }
    fleet.assert_synced(1).await;
}

/// One replica alone follows another cluster: its live state is what takes the most memory.
#[tokio::test(start_paused = true)]
async fn another_cluster_is_followed_by_one_replica() {
    let mut fleet = Fleet::new(16).await;
    for number in 0..8 {
        let server = format!("https://{number}.example.com");
        let options = ApiServerOptions { seed: Some(number), ..ApiServerOptions::default() };
        fleet.others.insert(server.clone(), Cluster::new(ApiServer::new(options).unwrap().service()));
        let secret = json!({"apiVersion": "v1", "kind": "Secret",
            "metadata": {"name": format!("cluster-{number}"), "namespace": ENGINE,
                "labels": {"argocd.argoproj.io/secret-type": "cluster"}},
            "stringData": {"name": number.to_string(), "server": server, "config": "{}"}});
        fleet.stage.apply(secret).await;
    }
    let server_of = |number: usize| format!("https://{}.example.com", number % 8);
    for (number, app) in fleet.apps.iter().enumerate() {
        let mut object = application(app, app);
        object["spec"]["destination"]["server"] = server_of(number).into();
        fleet.record.0.lock().unwrap().apps.insert(app.clone(), object.clone());
        fleet.stage.apply(object).await;
    }
    let first = fleet.start().await;
    for app in &fleet.apps {
        fleet.stage.until_green(app).await;
    }
    let followed = |fleet: &Fleet, name: &str| fleet.running[name].controller.caches().len();
    assert_eq!(followed(&fleet, &first), 9, "it is alone");
    let second = fleet.start().await;
    fleet.until_divided(2).await;
    assert!(followed(&fleet, &second) > 1);
    let all = followed(&fleet, &first) + followed(&fleet, &second);
    assert_eq!(all, 10, "both follow the engine's own, and each other cluster is followed once");
    fleet.kill(&first);
    fleet.until_divided(1).await;
    fleet.edit("2");
    for (number, app) in fleet.apps.iter().enumerate() {
        let server = &fleet.others[&server_of(number)];
        let kind = tiphys_value::GroupVersionKind::new("", "v1", "ConfigMap");
        let resource = server.resource(&kind).await.unwrap();
        fleet
            .stage
            .until("it has the last edit", async || {
                let object = server.get(&resource, app, "one").await.unwrap()?;
                (object["data"]["key"] == "2").then_some(())
            })
            .await;
    }
    assert_eq!(followed(&fleet, &second), 9);
}

/// Kills, partitions and returns in orders that a seed decides.
#[tokio::test(start_paused = true)]
async fn whatever_becomes_of_replicas_each_edit_is_synced_once() {
    let mut state: u64 = 0x2545_F491_4F6C_DD1D;
    let mut random = |below: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % below
    };
    let mut fleet = Fleet::new(12).await;
    fleet.apply_apps().await;
    for _ in 0..3 {
        fleet.start().await;
    }
    fleet.until_all("1").await;
    for round in 2..26 {
        let names: Vec<String> = fleet.running.keys().cloned().collect();
        let name = names[usize::try_from(random(3)).unwrap()].clone();
        tokio::time::sleep(Duration::from_millis(random(4000))).await;
        fleet.edit(&round.to_string());
        tokio::time::sleep(Duration::from_millis(random(300))).await;
        match random(3) {
            0 => fleet.kill(&name),
            1 => fleet.stop(&name).await,
            _ => {
                fleet.cut_off(&name, true);
                tokio::time::sleep(Duration::from_millis(random(30_000))).await;
                fleet.cut_off(&name, false);
                tokio::time::sleep(Duration::from_secs(3)).await;
                if fleet.running[&name].keeping.is_finished() {
                    fleet.until_lost(&name).await;
                }
            }
        }
        let began = Instant::now();
        fleet.until_all(&round.to_string()).await;
        assert!(began.elapsed() < TAKEOVER, "round {round}: {:?}", began.elapsed());
        while fleet.running.len() < 3 {
            fleet.start().await;
        }
        fleet.record.assert_no_double_write();
    }
    fleet.assert_synced(25).await;
}
