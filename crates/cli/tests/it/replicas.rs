//! Three controllers, each a process of its own, on a real API server: killed, stopped and cut off at any
//! moment. What the server recorded says who wrote what.
//!
//! `TIPHYS_ROUNDS` says how many faults are tried; a few by default. `TIPHYS_SEED` decides their moments, so that
//! several runs beside each other try others.
#![allow(clippy::panic, clippy::print_stdout, reason = "tests")]

use std::{
    collections::BTreeMap,
    fs,
    io::{Read, Write},
    net::{Shutdown, SocketAddr, TcpListener, TcpStream},
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use jiff::Timestamp;
use tiphys_cluster::{ApplyOptions, Cluster, PatchType};
use tiphys_controller::{crds, replica_of};
use tiphys_oracles::RealApiServer;
use tiphys_value::{GroupVersionKind, ObjectExt, Value, json};

use crate::common::{Repo, config_map};

/// How many faults are tried unless somebody asks for more: one of each.
const ROUNDS: usize = 3;
const APPS: usize = 12;
const REPLICAS: usize = 3;
/// After how many rounds what the server recorded is judged, besides at the end: a long run that is ended
/// early has told of all but the last of them.
const JUDGED_EVERY: usize = 10;
/// How long a round may take before the test gives up.
const PATIENCE: Duration = Duration::from_secs(180);

/// Numbers that a seed decides.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }

    fn millis(&mut self, limit: u64) -> Duration {
        Duration::from_millis(self.below(limit))
    }
}

/// A way to the API server that can be closed: what is on its way stays on its way until it is open again.
struct Road {
    address: SocketAddr,
    is_closed: Arc<AtomicBool>,
    streams: Arc<Mutex<Vec<TcpStream>>>,
}

impl Road {
    fn to(server: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (is_closed, streams) = (Arc::new(AtomicBool::new(false)), Arc::default());
        let (closed, all, server): (_, Arc<Mutex<Vec<TcpStream>>>, _) =
            (is_closed.clone(), Arc::clone(&streams), server.to_owned());
        thread::spawn(move || {
            for near in listener.incoming() {
                let (Ok(near), Ok(far)) = (near, TcpStream::connect(&server)) else { continue };
                let _ = (near.set_nodelay(true), far.set_nodelay(true));
                let mut kept = all.lock().unwrap();
                kept.extend([near.try_clone().unwrap(), far.try_clone().unwrap()]);
                drop(kept);
                carry(near.try_clone().unwrap(), far.try_clone().unwrap(), closed.clone());
                carry(far, near, closed.clone());
            }
        });
        Self { address, is_closed, streams }
    }

    fn close(&self, is_closed: bool) {
        self.is_closed.store(is_closed, Ordering::SeqCst);
    }
}

impl Drop for Road {
    fn drop(&mut self) {
        for stream in self.streams.lock().unwrap().drain(..) {
            // It may be closed already.
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

/// Carries bytes from one connection to another, and holds them while the road is closed.
fn carry(mut from: TcpStream, mut to: TcpStream, is_closed: Arc<AtomicBool>) {
    thread::spawn(move || {
        let mut bytes = vec![0; 64 << 10];
        while let Ok(count @ 1..) = from.read(&mut bytes) {
            while is_closed.load(Ordering::SeqCst) {
                thread::sleep(Duration::from_millis(20));
            }
            if to.write_all(&bytes[..count]).is_err() {
                break;
            }
        }
        let _ = to.shutdown(Shutdown::Both);
    });
}

/// A controller's process.
struct Process {
    user: String,
    child: Child,
    road: Road,
    log: PathBuf,
}

impl Process {
    fn signal(&self, signal: &str) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args([signal, &id]).status().unwrap().success());
    }

    fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

struct Fleet {
    server: RealApiServer,
    runtime: tokio::runtime::Runtime,
    cluster: Cluster,
    repo: Repo,
    processes: Vec<Process>,
    started: usize,
}

impl Fleet {
    fn new(server: RealApiServer) -> Self {
        let repo = Repo::with(&[]);
        for version in 0..2 {
            for app in 0..APPS {
                repo.write(&format!("{version}/app-{app}/one.yaml"), config_map("one", &version.to_string()));
            }
        }
        repo.git_init();
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let cluster = runtime.block_on(Cluster::connect(Some(&server.kubeconfig()), None)).unwrap().cluster;
        let fleet = Self { server, runtime, cluster, repo, processes: Vec::new(), started: 0 };
        for definition in crds::definitions() {
            fleet.apply(&definition);
        }
        let began = Instant::now();
        while !fleet.serves("Application") {
            assert!(began.elapsed() < PATIENCE);
            thread::sleep(Duration::from_millis(100));
        }
        fleet.apply(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "argocd"}}));
        fleet
    }

    fn serves(&self, kind: &str) -> bool {
        let served = self.runtime.block_on(self.cluster.discover()).unwrap();
        served.kinds().any(|known| known.gvk.kind == kind)
    }

    fn apply(&self, object: &Value) {
        let options =
            ApplyOptions { field_manager: "test".into(), force: true, dry_run: false, validate: true };
        self.runtime.block_on(self.cluster.apply(object, &options)).unwrap();
    }

    fn application(&self, number: usize, version: usize) -> Value {
        let name = format!("app-{number}");
        json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
            "metadata": {"name": name, "namespace": "argocd"},
            "spec": {"project": "default", "destination": {"name": "in-cluster", "namespace": name},
                "source": {"repoURL": format!("file://{}", self.repo.path("").display()),
                    "path": format!("{version}/{name}")},
                "syncPolicy": {"automated": {"prune": true, "selfHeal": true},
                    "syncOptions": ["CreateNamespace=true"]}}})
    }

    /// Lets every Application want another folder.
    fn edit(&self, version: usize) {
        let resource = self.resource("argoproj.io", "v1alpha1", "Application");
        for number in 0..APPS {
            let name = format!("app-{number}");
            let patch = json!({"spec": {"source": {"path": format!("{version}/{name}")}}});
            let patched =
                self.cluster.patch(&resource, ("argocd", &name), "", PatchType::Merge, &patch, "test");
            self.runtime.block_on(patched).unwrap();
        }
    }

    fn resource(&self, group: &str, version: &str, kind: &str) -> tiphys_cluster::Resource {
        let kind = GroupVersionKind::new(group, version, kind);
        self.runtime.block_on(self.cluster.resource(&kind)).unwrap()
    }

    fn list(&self, group: &str, version: &str, kind: &str) -> Vec<Value> {
        let resource = self.resource(group, version, kind);
        self.runtime.block_on(self.cluster.list(&resource, "")).unwrap().items
    }

    /// Starts controllers until there are three, each under a user of its own.
    fn fill(&mut self) {
        while self.processes.len() < REPLICAS {
            let user = format!("user-{}", self.started);
            self.started += 1;
            let road = Road::to(&self.server.address());
            let config = self.repo.run_dir().join(format!("{user}.yaml"));
            let text = self.server.kubeconfig_of(&user, &user);
            fs::write(&config, text.replace(&self.server.address(), &road.address.to_string())).unwrap();
            let log = self.repo.run_dir().join(format!("{user}.log"));
            let mut command = self.repo.command(&["controller", "--metrics=127.0.0.1:0"]);
            command.args(["--local-repositories=repo", "--workers=4", "--render-processes=0"]);
            command.arg("--kubeconfig").arg(&config).env("HOSTNAME", &user);
            let file = fs::File::create(&log).unwrap();
            let child = command.stdout(Stdio::null()).stderr(file).spawn().unwrap();
            self.processes.push(Process { user, child, road, log });
        }
    }

    /// Waits until three replicas share the Applications, and nothing more moves between them.
    fn until_divided(&mut self) {
        let began = Instant::now();
        let mut last = (Value::Null, Instant::now());
        loop {
            self.processes.retain_mut(|process| !process.has_ended());
            self.fill();
            let lease = self.table().unwrap_or_default();
            // With few Applications one of three may have none, but it has slots.
            let slots: BTreeMap<String, String> = lease
                .annotation("tiphys.dev/slots")
                .map(|text| serde_json::from_str(text).unwrap())
                .unwrap_or_default();
            let is_whole = slots.len() == REPLICAS
                && (0..APPS).all(|number| replica_of(&lease, &self.application(number, 0)).is_some());
            let slots = json!(slots);
            if !is_whole || last.0 != slots {
                last = (slots, Instant::now());
            } else if last.1.elapsed() > Duration::from_secs(4) {
                return;
            }
            assert!(began.elapsed() < PATIENCE, "{}\n{}", last.0, self.logs());
            thread::sleep(Duration::from_millis(200));
        }
    }

    /// The Lease that says who has what.
    fn table(&self) -> Option<Value> {
        let resource = self.resource("coordination.k8s.io", "v1", "Lease");
        self.runtime.block_on(self.cluster.get(&resource, "argocd", "tiphys-controller")).unwrap()
    }

    /// Waits until every Application is as an edit wants it; how long that took.
    fn until_synced(&self, version: usize, since: Instant) -> Duration {
        let wanted = Value::from(version.to_string());
        loop {
            let objects = self.list("", "v1", "ConfigMap");
            let current = objects.iter().filter(|object| object["data"]["key"] == wanted).count();
            let apps = self.list("argoproj.io", "v1alpha1", "Application");
            let path = format!("{version}/");
            let green = |app: &Value| {
                let compared = app.str_at(&["status", "sync", "comparedTo", "source", "path"]);
                compared.is_some_and(|compared| compared.starts_with(&path))
                    && app.str_at(&["status", "sync", "status"]) == Some("Synced")
                    && app.str_at(&["status", "operationState", "phase"]) == Some("Succeeded")
            };
            if current == APPS && apps.iter().filter(|app| green(app)).count() == APPS {
                return since.elapsed();
            }
            assert!(since.elapsed() < PATIENCE, "{current} of {APPS}\n{apps:#?}\n{}", self.logs());
            thread::sleep(Duration::from_millis(100));
        }
    }

    /// How many operations each Application had.
    fn synced(&self) -> BTreeMap<String, u64> {
        let apps = self.list("argoproj.io", "v1alpha1", "Application");
        let count = |app: &Value| {
            let last = app["status"]["history"].as_array().and_then(|history| history.last()?["id"].as_u64());
            last.map_or(0, |id| id + 1)
        };
        apps.iter().map(|app| (app.name().to_owned(), count(app))).collect()
    }

    fn logs(&self) -> String {
        let log = |process: &Process| {
            format!("{}:\n{}", process.user, fs::read_to_string(&process.log).unwrap_or_default())
        };
        self.processes.iter().map(log).collect::<Vec<_>>().join("\n")
    }
}

/// The user whose process has a Lease of that name.
fn user_of(replica: &str) -> String {
    let parts: Vec<&str> = replica.trim_start_matches("tiphys-").split('-').collect();
    parts[..2].join("-")
}

/// A write that the server did.
struct Recorded {
    user: String,
    app: String,
    what: String,
    came: Timestamp,
    done: Timestamp,
}

/// What the server recorded: the writes of controllers, and every state of the table.
fn recorded(fleet: &Fleet) -> (Vec<Recorded>, Vec<(Timestamp, Timestamp, Value)>) {
    let text = fs::read_to_string(fleet.server.audit_log()).unwrap();
    let (mut writes, mut tables) = (Vec::new(), Vec::new());
    for line in text.lines() {
        let event: Value = serde_json::from_str(line).unwrap();
        let time = |field: &str| event[field].as_str().unwrap().parse::<Timestamp>().unwrap();
        let (came, done) = (time("requestReceivedTimestamp"), time("stageTimestamp"));
        if event["responseStatus"]["code"].as_u64().is_none_or(|code| code >= 300) {
            continue;
        }
        let at = |path: &[&str]| event.str_at(path).unwrap_or_default().to_owned();
        let (resource, namespace) = (at(&["objectRef", "resource"]), at(&["objectRef", "namespace"]));
        let name = at(&["objectRef", "name"]);
        if resource == "leases" {
            if name == "tiphys-controller" {
                tables.push((came, done, event["responseObject"].clone()));
            }
            continue;
        }
        let user = at(&["user", "username"]);
        let app = match (resource.as_str(), namespace.as_str()) {
            ("applications", "argocd") => name,
            ("namespaces", _) => name,
            (_, "argocd") => continue,
            _ => namespace,
        };
        let is_dry = at(&["requestURI"]).contains("dryRun=All");
        if user.starts_with("user-") && app.starts_with("app-") && !is_dry {
            let what = format!("{} {}", at(&["verb"]), at(&["requestURI"]));
            writes.push(Recorded { user, app, what, came, done });
        }
    }
    tables.sort_by_key(|(_, done, _)| *done);
    (writes, tables)
}

/// Writes of somebody who did not have the Application at that moment, by the table in force when the write
/// came, or while it was done.
fn double_writes(fleet: &Fleet) -> (usize, Vec<String>) {
    let (writes, tables) = recorded(fleet);
    let faults = writes.iter().filter(|write| {
        let number = write.app.trim_start_matches("app-").parse().unwrap();
        let app = fleet.application(number, 0);
        // A table counts from some moment between when it came and when its write was answered.
        let last = tables.iter().rposition(|(_, done, _)| *done <= write.came).unwrap_or(0);
        let possible = tables[last..].iter().take_while(|(came, _, _)| *came <= write.done);
        let mut owners =
            possible.filter_map(|(_, _, table)| replica_of(table, &app)).map(|name| user_of(&name));
        !owners.any(|owner| owner == write.user)
    });
    let faults =
        faults.map(|write| format!("{} {} at {}: {}", write.user, write.app, write.came, write.what));
    (writes.len(), faults.collect())
}

/// How many writes the server recorded: none is by somebody who did not have the Application, and each
/// Application was synced once when it came and once for each of these edits.
fn judged(fleet: &Fleet, edits: usize) -> usize {
    let (writes, double) = double_writes(fleet);
    println!("{writes} writes by {} processes, {} of them double", fleet.started, double.len());
    assert_eq!(double, [] as [String; 0]);
    let expected = u64::try_from(edits + 1).unwrap();
    let wrong: BTreeMap<_, _> = fleet.synced().into_iter().filter(|(_, count)| *count != expected).collect();
    assert_eq!(wrong, BTreeMap::new(), "each edit is synced once");
    writes
}

#[test]
fn three_processes_share_the_work_of_a_real_api_server() {
    let given = |name: &str| std::env::var(name).ok();
    let rounds = given("TIPHYS_ROUNDS").map_or(ROUNDS, |text| text.parse().unwrap());
    let seed = given("TIPHYS_SEED").map_or(0, |text| text.parse().unwrap());
    let Some(server) = RealApiServer::start_audited_or_skip(REPLICAS + 2 * rounds + 10) else { return };
    let mut fleet = Fleet::new(server);
    let mut random = Random(0x2545_F491_4F6C_DD1D ^ seed);
    for number in 0..APPS {
        fleet.apply(&fleet.application(number, 0));
    }
    fleet.fill();
    fleet.until_synced(0, Instant::now());
    let mut times = BTreeMap::<&str, Vec<Duration>>::new();
    let mut writes = 0;
    for round in 1..=rounds {
        fleet.until_divided();
        let version = round % 2;
        let (victim, length) = (usize::try_from(random.below(3)).unwrap(), random.millis(25_000));
        // At any moment: before, while and after this one and the others are at work on an edit.
        let edited = random.millis(400);
        let before = match random.below(2) {
            0 => random.millis(800),
            _ => edited + random.millis(200),
        };
        let fault = ["kill -9", "stopped", "cut off"][(round - 1) % 3];
        thread::scope(|scope| {
            let editing = scope.spawn(|| {
                thread::sleep(edited);
                fleet.edit(version);
            });
            thread::sleep(before);
            let began = Instant::now();
            let process = &fleet.processes[victim];
            let undo = match fault {
                "kill -9" => {
                    process.signal("-KILL");
                    None
                }
                "stopped" => {
                    process.signal("-STOP");
                    Some(scope.spawn(move || {
                        thread::sleep(length);
                        process.signal("-CONT");
                    }))
                }
                _ => {
                    process.road.close(true);
                    Some(scope.spawn(move || {
                        thread::sleep(length);
                        process.road.close(false);
                    }))
                }
            };
            editing.join().unwrap();
            let taken = fleet.until_synced(version, began);
            println!("round {round}: {fault} for {length:.1?}: all is synced after {taken:.1?}");
            times.entry(fault).or_default().push(taken);
            if let Some(undo) = undo {
                undo.join().unwrap();
            }
        });
        fleet.processes.retain_mut(|process| !process.has_ended());
        if round % JUDGED_EVERY == 0 || round == rounds {
            fleet.until_divided();
            // What came late would be done by now.
            fleet.until_synced(version, Instant::now());
            writes = judged(&fleet, round);
        }
    }
    for (fault, mut times) in times {
        times.sort();
        let (median, longest) = (times[times.len() / 2], times[times.len() - 1]);
        println!("{fault}: {} times, median {median:.1?}, longest {longest:.1?}", times.len());
    }
    assert!(writes > APPS * rounds);
}
