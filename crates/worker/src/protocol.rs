//! What a worker and the process that it works for say to each other: one question or answer at a time, each
//! a length in four bytes (big endian) and a value in MessagePack.

use std::{
    collections::BTreeMap,
    io::{self, Read, Write},
};

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_bytes::ByteBuf;
use tiphys_model::{SourceType, Tracking};
use tiphys_value::{GroupVersionKind, Value};

use crate::fault_transfer::{ArchiveFault, FileFault, RemoteFault, RenderFault};

/// The longest message, in bytes: twice the largest file that a tree hands out, and six times the largest
/// output of a public repository that was measured. What is longer is neither written nor read.
pub(crate) const MAX_MESSAGE: usize = 64 << 20;

/// What to render, and what the worker is told of the world beforehand.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Job {
    pub application: Value,
    /// Manifests in the place of the Application's sources.
    pub manifests: Option<Vec<String>>,
    pub kube_version: String,
    pub api_versions: Vec<String>,
    pub tracking: Tracking,
    pub engine_namespace: String,
    pub mock_secrets: bool,
    /// RFC 3339.
    pub now: Option<String>,
    pub offers: Offers,
    /// Processor time that the rendering may take, in seconds.
    pub cpu_seconds: u64,
}

/// What the process that it works for has, so that the worker need not ask for it.
#[derive(Debug, Serialize, Deserialize)]
#[allow(clippy::struct_excessive_bools, reason = "each is a question of its own")]
pub(crate) struct Offers {
    /// The tools that may render.
    pub tools: Vec<SourceType>,
    /// Flags of kustomize, by the version that a source asks for.
    pub kustomize_options: BTreeMap<String, String>,
    pub jsonnet: bool,
    pub parts: bool,
    pub plugins: bool,
    pub functions: bool,
    pub remote_loader: bool,
    pub chart_archives: bool,
}

/// What a worker says.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Said {
    Question(Question),
    Done(Result<Output, RenderFault>),
}

/// What a worker asks. Trees are named by the numbers that earlier answers gave them.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Question {
    Repository { url: String, revision: String },
    Chart { repository: String, chart: String, version: String, pass_credentials: bool },
    Kind { tree: u64, path: String },
    Read { tree: u64, path: String },
    Size { tree: u64, path: String },
    List { tree: u64, path: String },
    Canonical { tree: u64, path: String },
    Target { tree: u64, path: String },
    IsNamespaced(GroupVersionKind),
    PermitsValuesFrom(String),
    TagRevision { prefix: String, constraint: String },
    ChartAddress(String),
    ChartArchive { name: String, version: String, repository: String, pass_credentials: bool },
    ChartAdvice,
    RemoteRepository(RemoteBase),
    RemoteFile(String),
    RemoteChart { repository: String, name: String, version: String },
    FindFunction(Program),
    RunFunction(Box<Call>),
    Plugin { name: String, tree: u64, folder: String, env: BTreeMap<String, String> },
}

/// [`tiphys_kustomize::RepoUrl`].
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct RemoteBase {
    pub raw: String,
    pub host: String,
    pub repo_path: String,
    pub folder: String,
    pub revision: String,
    pub submodules: bool,
    pub timeout_ms: u64,
}

/// [`tiphys_kustomize::FunctionProgram`].
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Program {
    Executable(String),
    Image(String),
    Plugin { api_version: String, kind: String },
}

/// [`tiphys_kustomize::FunctionCall`].
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Call {
    pub program: Program,
    pub args: Vec<String>,
    pub env: Vec<(String, String)>,
    pub input: String,
    pub config_file: Option<String>,
    pub tree: u64,
    pub folder: String,
    pub is_remote: bool,
}

/// What the process that a worker works for answers; of the shape that the question asks for.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Answer {
    Tree { tree: u64, revision: String },
    IsDir(bool),
    Bytes(ByteBuf),
    Size(u64),
    Entries(Vec<Entry>),
    Text(String),
    MaybeText(Option<String>),
    MaybeFlag(Option<bool>),
    Archive { version: String, bytes: ByteBuf },
    Ran { output: String, complaints: String, failure: Option<String> },
    Generated(Option<(String, String)>),
    RenderFault(RenderFault),
    FileFault(FileFault),
    RemoteFault(RemoteFault),
    ArchiveFault(ArchiveFault),
    TextFault(String),
}

/// [`tiphys_vfs::DirEntry`].
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Entry {
    pub name: String,
    pub is_dir: bool,
    pub is_symlink: bool,
    pub broken: Option<Broken>,
}

/// [`tiphys_vfs::BrokenLink`].
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Broken {
    Missing(String),
    NotDir,
    Circle,
    TooDeep,
}

/// [`tiphys_render::Rendered`] without origins.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Output {
    pub objects: Vec<Object>,
    pub sources: Vec<Source>,
    pub warnings: Vec<String>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Object {
    pub value: Value,
    pub file: String,
    pub line: u32,
    pub column: u32,
}

/// [`tiphys_render::RenderedSource`].
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Source {
    pub revision: String,
    pub source_type: Option<SourceType>,
    pub names_revision: bool,
    pub asked_versions: BTreeMap<String, bool>,
}

/// Writes a message.
pub(crate) fn write(to: &mut impl Write, message: &impl Serialize) -> io::Result<()> {
    write_encoded(to, &encoded(message)?)
}

/// A message as it is written.
///
/// # Errors
/// It is longer than [`MAX_MESSAGE`].
pub(crate) fn encoded(message: &impl Serialize) -> io::Result<Vec<u8>> {
    let body = rmp_serde::to_vec(message).map_err(io::Error::other)?;
    if body.len() > MAX_MESSAGE {
        return Err(io::Error::other(format!(
            "a message of {} bytes is longer than {MAX_MESSAGE}",
            body.len()
        )));
    }
    Ok(body)
}

/// Writes what [`encoded`] made.
pub(crate) fn write_encoded(to: &mut impl Write, body: &[u8]) -> io::Result<()> {
    let length = u32::try_from(body.len()).map_err(io::Error::other)?;
    to.write_all(&length.to_be_bytes())?;
    to.write_all(body)?;
    to.flush()
}

/// Reads a message; `None` at the end of what the other side says.
pub(crate) fn read<T: DeserializeOwned>(from: &mut impl Read) -> io::Result<Option<T>> {
    let mut length = [0; 4];
    if let Err(error) = from.read_exact(&mut length) {
        return if error.kind() == io::ErrorKind::UnexpectedEof { Ok(None) } else { Err(error) };
    }
    let length = u32::from_be_bytes(length) as usize;
    if length > MAX_MESSAGE {
        return Err(io::Error::other(format!("a message of {length} bytes is longer than {MAX_MESSAGE}")));
    }
    // Grows with what arrives: a length alone takes no memory.
    let mut body = Vec::new();
    from.take(length as u64).read_to_end(&mut body)?;
    if body.len() < length {
        return Ok(None);
    }
    rmp_serde::from_slice(&body).map(Some).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use tiphys_value::json;

    use super::*;

    #[test]
    fn numbers_and_bytes_arrive_as_they_were() {
        let value = json!({"float": 0.1, "whole": 1.0, "big": u64::MAX, "small": i64::MIN, "null": null,
            "odd": 5e-324, "list": [1, "x", true]});
        let mut line = Vec::new();
        write(&mut line, &value).unwrap();
        write(&mut line, &Answer::Bytes(ByteBuf::from(vec![0, 255, 10]))).unwrap();
        let mut from = line.as_slice();
        assert_eq!(read::<Value>(&mut from).unwrap(), Some(value));
        let bytes = read::<Answer>(&mut from).unwrap();
        assert!(matches!(bytes, Some(Answer::Bytes(bytes)) if *bytes == [0, 255, 10]));
        assert!(read::<Value>(&mut from).unwrap().is_none());
    }

    #[test]
    fn what_is_too_long_or_broken_is_an_error_or_an_end() {
        let mut long: &[u8] = &[255, 255, 255, 255, 1];
        assert!(read::<Value>(&mut long).is_err());
        let mut cut: &[u8] = &[0, 0, 1, 0, 1];
        assert!(read::<Value>(&mut cut).unwrap().is_none());
        let mut odd: &[u8] = &[0, 0, 0, 1, 0xc1];
        assert!(read::<Value>(&mut odd).is_err());
    }
}
