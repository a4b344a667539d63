//! A real kube-apiserver with its etcd on loopback, for as long as a test or a command needs it. No other
//! program runs: objects are stored and checked, and nothing comes of them.

use std::{
    fs::{self, File},
    io,
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicU32, Ordering},
    thread,
    time::{Duration, Instant},
};

use crate::{OracleError, find};

/// How long the server may take to become ready.
const READY: Duration = Duration::from_secs(300);
/// A port that was free a moment ago may be taken by now; then others are tried.
const ATTEMPTS: u32 = 5;
const TOKEN: &str = "administrator";
/// Writes are recorded; of Leases what was written, too.
const AUDIT_POLICY: &str = "\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
  - {level: None, verbs: [get, list, watch]}
  - {level: None, namespaces: [kube-system]}
  - {level: RequestResponse, resources: [{group: coordination.k8s.io, resources: [leases]}]}
  - {level: Metadata}
";

/// Why the server does not run.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A program is not installed.
    #[error(transparent)]
    Oracle(#[from] OracleError),
    /// Files or programs of this machine.
    #[error("the real API server cannot be started: {0}")]
    Io(#[from] io::Error),
    /// No key for tokens of service accounts.
    #[error("no key can be made: {0}")]
    Key(String),
    /// It ended, or does not become ready.
    #[error("the real API server does not become ready: {0}")]
    NotReady(String),
}

/// The running programs; dropping it ends them.
pub struct RealApiServer {
    programs: Vec<Child>,
    dir: PathBuf,
    port: u16,
}

impl RealApiServer {
    /// Starts both programs and waits until the API server is ready. Role-based access control is on.
    ///
    /// # Errors
    /// A program is missing, or does not come up.
    pub fn start() -> Result<Self, StartError> {
        Self::start_with(None, &[])
    }

    /// As [`Self::start`], with more flags.
    pub(crate) fn start_with_flags(flags: &[&str]) -> Result<Self, StartError> {
        Self::start_with(None, flags)
    }

    fn start_with(audited_users: Option<usize>, flags: &[&str]) -> Result<Self, StartError> {
        let mut last = String::new();
        for _ in 0..ATTEMPTS {
            let mut server = Self::spawn(audited_users, flags)?;
            match server.wait_until_ready() {
                Ok(()) => return Ok(server),
                Err(StartError::NotReady(why)) => last = why,
                Err(error) => return Err(error),
            }
        }
        Err(StartError::NotReady(last))
    }

    /// As [`Self::start_or_skip`]; every write is recorded in [`Self::audit_log`], and each of so many users
    /// may do everything: `user-0` and so on, with their names as tokens.
    ///
    /// # Panics
    /// As [`Self::start_or_skip`].
    pub fn start_audited_or_skip(users: usize) -> Option<Self> {
        for name in ["kube-apiserver", "etcd", "kubectl"] {
            crate::find_or_skip(name)?;
        }
        Some(Self::start_with(Some(users), &[]).unwrap_or_else(|error| panic!("{error}")))
    }

    /// The file to which the server writes what was written, one event of its audit a line.
    pub fn audit_log(&self) -> PathBuf {
        self.dir.join("audit.log")
    }

    /// As [`Self::start`], for a test: `None` after saying `skipped: needs NAME` if a program is missing.
    ///
    /// # Panics
    /// If a program is missing and `CI` is `true`, or if the server does not come up.
    pub fn start_or_skip() -> Option<Self> {
        for name in ["kube-apiserver", "etcd", "kubectl"] {
            crate::find_or_skip(name)?;
        }
        Some(Self::start().unwrap_or_else(|error| panic!("{error}")))
    }

    fn spawn(audited_users: Option<usize>, flags: &[&str]) -> Result<Self, StartError> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let dir = std::env::temp_dir().join(format!("tiphys-apiserver-{}-{number}", std::process::id()));
        fs::create_dir_all(&dir)?;
        let (client, peer, secure) = (free_port()?, free_port()?, free_port()?);
        let mut server = Self { programs: Vec::new(), dir: dir.clone(), port: secure };
        let etcd_url = format!("http://127.0.0.1:{client}");
        let mut etcd = Command::new(find("etcd")?);
        etcd.arg("--data-dir").arg(dir.join("etcd")).arg("--unsafe-no-fsync");
        etcd.arg(format!("--listen-client-urls={etcd_url}"));
        etcd.arg(format!("--advertise-client-urls={etcd_url}"));
        etcd.arg(format!("--listen-peer-urls=http://127.0.0.1:{peer}"));
        server.run(etcd, "etcd.log")?;
        let key = rcgen::KeyPair::generate().map_err(|error| StartError::Key(error.to_string()))?;
        fs::write(dir.join("sa.key"), key.serialize_pem())?;
        fs::write(dir.join("sa.pub"), key.public_key_pem())?;
        let mut tokens = format!("{TOKEN},kubernetes-admin,kubernetes-admin,system:masters\n");
        for user in 0..audited_users.unwrap_or_default() {
            tokens.push_str(&format!("user-{user},user-{user},user-{user},system:masters\n"));
        }
        fs::write(dir.join("tokens.csv"), tokens)?;
        let mut api = Command::new(find("kube-apiserver")?);
        api.arg(format!("--etcd-servers={etcd_url}")).arg(format!("--secure-port={secure}"));
        api.args(["--bind-address=127.0.0.1", "--advertise-address=127.0.0.1", "--authorization-mode=RBAC"]);
        api.arg(with_path("--cert-dir=", &dir.join("certs")));
        api.arg(with_path("--token-auth-file=", &dir.join("tokens.csv")));
        api.arg(with_path("--service-account-key-file=", &dir.join("sa.pub")));
        api.arg(with_path("--service-account-signing-key-file=", &dir.join("sa.key")));
        api.arg("--service-account-issuer=https://kubernetes.default.svc");
        api.arg("--service-cluster-ip-range=10.96.0.0/16");
        if audited_users.is_some() {
            fs::write(dir.join("audit.yaml"), AUDIT_POLICY)?;
            api.arg(with_path("--audit-policy-file=", &dir.join("audit.yaml")));
            api.arg(with_path("--audit-log-path=", &server.audit_log()));
        }
        // Every installer of clusters allows it.
        api.arg("--allow-privileged=true").args(flags);
        server.run(api, "kube-apiserver.log")?;
        fs::write(dir.join("kubeconfig"), server.kubeconfig_of("admin", TOKEN))?;
        Ok(server)
    }

    /// Starts a program that ends when this is dropped; what it says goes to a file.
    pub(crate) fn run(&mut self, mut command: Command, log: &str) -> io::Result<()> {
        let log = File::create(self.dir.join(log))?;
        command.stdout(log.try_clone()?).stderr(log).stdin(Stdio::null());
        self.programs.push(command.spawn()?);
        Ok(())
    }

    /// The folder of the programs' files; it goes with them.
    pub(crate) fn folder(&self) -> &Path {
        &self.dir
    }

    /// The first program that has ended, in words.
    pub(crate) fn ended_program(&mut self) -> io::Result<Option<String>> {
        for program in &mut self.programs {
            if let Some(status) = program.try_wait()? {
                return Ok(Some(format!("a program ended with {status}: {}", self.tail())));
            }
        }
        Ok(None)
    }

    fn wait_until_ready(&mut self) -> Result<(), StartError> {
        let kubectl = find("kubectl")?;
        let began = Instant::now();
        while began.elapsed() < READY {
            let asked = Command::new(&kubectl)
                .arg("--kubeconfig")
                .arg(self.kubeconfig())
                .args(["get", "--raw", "/readyz", "--request-timeout=10s"])
                .output()?;
            if asked.status.success() && asked.stdout == b"ok" {
                return Ok(());
            }
            if let Some(why) = self.ended_program()? {
                return Err(StartError::NotReady(why));
            }
            thread::sleep(Duration::from_millis(200));
        }
        Err(StartError::NotReady(format!("after {READY:?}: {}", self.tail())))
    }

    /// The last lines of what the programs said.
    fn tail(&self) -> String {
        let files = fs::read_dir(&self.dir).into_iter().flatten().flatten().map(|entry| entry.path());
        let mut logs: Vec<_> = files.filter(|file| file.extension().is_some_and(|it| it == "log")).collect();
        logs.sort();
        let texts = logs.iter().map(|log| fs::read_to_string(log).unwrap_or_default());
        let last = |text: String| text.lines().rev().take(3).map(str::to_owned).collect::<Vec<_>>();
        texts.flat_map(last).collect::<Vec<_>>().join("\n")
    }

    /// Address and port.
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// The administrator's bearer token.
    pub fn token(&self) -> &'static str {
        TOKEN
    }

    /// The administrator's kubeconfig.
    pub fn kubeconfig(&self) -> PathBuf {
        self.dir.join("kubeconfig")
    }

    /// The text of a kubeconfig for somebody else.
    pub fn kubeconfig_of(&self, user: &str, token: &str) -> String {
        format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: real\n\
             contexts: [{{name: real, context: {{cluster: real, user: {user}}}}}]\n\
             clusters: [{{name: real, cluster: {{server: 'https://{}', insecure-skip-tls-verify: true}}}}]\n\
             users: [{{name: {user}, user: {{token: '{token}'}}}}]\n",
            self.address()
        )
    }

    /// Ids of the running programs: etcd, kube-apiserver.
    pub fn ids(&self) -> Vec<u32> {
        self.programs.iter().map(Child::id).collect()
    }
}

impl Drop for RealApiServer {
    fn drop(&mut self) {
        for program in self.programs.iter_mut().rev() {
            // One that has ended already needs no end.
            let _ = program.kill();
            let _ = program.wait();
        }
        let _ = fs::remove_dir_all(&self.dir);
    }
}

pub(crate) fn with_path(flag: &str, path: &Path) -> String {
    format!("{flag}{}", path.display())
}

pub(crate) fn free_port() -> io::Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}
