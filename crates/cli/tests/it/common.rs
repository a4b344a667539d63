//! Repositories made on the spot, and the real binary run on them.

use std::{
    fs,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    sync::mpsc,
    time::Duration,
};

use tempfile::TempDir;

/// How long a test waits for an event before it gives up: far longer than any takes.
const PATIENCE: Duration = Duration::from_secs(120);

/// Address by which the Applications of the tests call their repository.
pub(crate) const URL: &str = "https://git.example.com/acme/shop.git";

/// A repository and a folder to run in.
pub(crate) struct Repo {
    dir: TempDir,
}

impl Repo {
    /// A repository with these files.
    pub(crate) fn with(files: &[(&str, &str)]) -> Self {
        let repo = Self { dir: tempfile::tempdir().expect("a temporary folder") };
        fs::create_dir_all(repo.path("")).expect("writable");
        for (path, text) in files {
            repo.write(path, text);
        }
        repo
    }

    /// A repository with one Application `shop` of the folder `manifests`.
    pub(crate) fn shop(files: &[(&str, &str)]) -> Self {
        let repo = Self::with(files);
        repo.write("root.yaml", application("shop", "manifests"));
        fs::create_dir_all(repo.path("manifests")).expect("writable");
        repo
    }

    /// A path in it.
    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.dir.path().join("repo").join(path)
    }

    /// The folder in which commands run.
    pub(crate) fn run_dir(&self) -> &Path {
        self.dir.path()
    }

    /// Writes a file.
    pub(crate) fn write(&self, path: &str, text: impl AsRef<[u8]>) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().expect("below the root")).expect("writable");
        fs::write(path, text).expect("writable");
    }

    /// Makes it a Git repository whose remote is [`URL`], with everything committed on `main`.
    pub(crate) fn git_init(&self) {
        self.git(&["init", "-q", "-b", "main"]);
        self.git(&["remote", "add", "origin", "git@git.example.com:acme/shop"]);
        self.commit();
    }

    /// Commits everything as it is.
    pub(crate) fn commit(&self) {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "-m", "all"]);
    }

    fn git(&self, args: &[&str]) {
        let identity =
            ["-c", "user.name=test", "-c", "user.email=test@example.com", "-c", "commit.gpgsign=false"];
        let output = Command::new("git").args(identity).args(args).current_dir(self.path("")).output();
        let output = output.expect("git is installed");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    /// `tiphys` with arguments, to be run beside the repository `repo`.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tiphys"));
        command.args(args).current_dir(self.dir.path());
        command.env("XDG_CACHE_HOME", self.dir.path().join("cache")).env_remove("KUBECONFIG");
        command.env("XDG_STATE_HOME", self.state_home());
        command
    }

    /// Where commands note the clusters that run.
    pub(crate) fn state_home(&self) -> PathBuf {
        self.dir.path().join("state")
    }

    /// The kubeconfig of the one cluster that runs.
    pub(crate) fn kubeconfig(&self) -> PathBuf {
        let clusters =
            fs::read_dir(self.state_home().join("tiphys/clusters")).expect("a cluster was started");
        let files = clusters.map(|entry| entry.expect("readable").path().join("kubeconfig"));
        let found: Vec<PathBuf> = files.filter(|file| file.is_file()).collect();
        assert_eq!(found.len(), 1, "{found:?}");
        found.into_iter().next().expect("one")
    }

    /// Runs `tiphys` to its end.
    pub(crate) fn run(&self, args: &[&str]) -> Run {
        Run(self.command(args).output().expect("the binary runs"))
    }

    /// Runs `tiphys up repo --once` with more arguments to its end.
    pub(crate) fn once(&self, args: &[&str]) -> Run {
        let mut all = vec!["up", "repo", "--once", "--timeout", "60s"];
        all.extend(args);
        self.run(&all)
    }

    /// Starts `tiphys up repo --output json` and leaves it running.
    pub(crate) fn start(&self, args: &[&str]) -> Running {
        self.start_at("repo", args)
    }

    /// Starts `tiphys up` of a place with `--output json` and leaves it running.
    pub(crate) fn start_at(&self, place: &str, args: &[&str]) -> Running {
        let mut all = vec!["up", place, "--output", "json"];
        all.extend(args);
        let mut child = self.command(&all).stdout(Stdio::piped()).spawn().expect("the binary runs");
        let stdout = BufReader::new(child.stdout.take().expect("piped"));
        let (send, lines) = mpsc::channel();
        std::thread::spawn(move || {
            // Nobody listens any more once the test is over.
            let _ = stdout.lines().map_while(Result::ok).try_for_each(|line| send.send(line));
        });
        Running { child, lines }
    }
}

/// What a finished command left.
pub(crate) struct Run(Output);

impl Run {
    /// Exit code.
    pub(crate) fn code(&self) -> Option<i32> {
        self.0.status.code()
    }

    /// stdout and stderr.
    pub(crate) fn text(&self) -> String {
        format!("{}{}", String::from_utf8_lossy(&self.0.stdout), String::from_utf8_lossy(&self.0.stderr))
    }

    /// stdout.
    pub(crate) fn stdout(&self) -> String {
        String::from_utf8_lossy(&self.0.stdout).into_owned()
    }

    /// Fails unless the exit code and all texts are there.
    pub(crate) fn expect(&self, code: i32, texts: &[&str]) {
        let all = self.text();
        assert_eq!(self.code(), Some(code), "{all}");
        for text in texts {
            assert!(all.contains(text), "{text:?} is missing in:\n{all}");
        }
    }
}

/// A running `tiphys up`; killed when dropped.
pub(crate) struct Running {
    /// The process.
    pub child: Child,
    lines: mpsc::Receiver<String>,
}

impl Running {
    /// Reads events until one fits.
    pub(crate) fn until(&mut self, fits: impl Fn(&serde_json::Value) -> bool) -> serde_json::Value {
        let mut seen = String::new();
        loop {
            let line = self.lines.recv_timeout(PATIENCE);
            let line = line.unwrap_or_else(|_| panic!("the expected event did not come; it said:\n{seen}"));
            let event: serde_json::Value = serde_json::from_str(&line).expect("one JSON object a line");
            if fits(&event) {
                return event;
            }
            seen.push_str(&line);
            seen.push('\n');
        }
    }

    /// Reads events until all Applications are green.
    pub(crate) fn until_green(&mut self) -> serde_json::Value {
        self.until(|event| event["event"] == "result" && event["green"] == true)
    }

    /// What it said that nobody has read yet.
    pub(crate) fn rest(&self) -> String {
        self.lines.try_iter().collect::<Vec<_>>().join("\n")
    }

    /// Kills it without a chance to tidy up, and waits for its end.
    pub(crate) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
    }
}

/// An automated Application of a folder of the repository.
pub(crate) fn application(name: &str, path: &str) -> String {
    format!(
        "apiVersion: argoproj.io/v1alpha1
kind: Application
metadata:
  name: {name}
  namespace: argocd
spec:
  project: default
  source:
    repoURL: {URL}
    targetRevision: HEAD
    path: {path}
  destination:
    server: https://kubernetes.default.svc
    namespace: {name}
  syncPolicy:
    automated: {{prune: true, selfHeal: true}}
    syncOptions: [CreateNamespace=true]
"
    )
}

/// A ConfigMap.
pub(crate) fn config_map(name: &str, value: &str) -> String {
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\ndata:\n  key: \"{value}\"\n")
}

/// The exit code of rehearsing a repository, and what is printed.
pub(crate) fn rehearse(repo: &Repo, args: &[&str]) -> (i32, String) {
    let mut all = vec!["rehearse", "repo", "--offline"];
    all.extend(args);
    let output = repo.command(&all).output().expect("the binary runs");
    let text =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    (output.status.code().expect("it is not killed"), text)
}
