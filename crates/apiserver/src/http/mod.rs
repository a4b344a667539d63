//! The API over HTTP.

mod body;
mod context;
mod discovery;
mod dispatch;
mod port_forward;
mod identity;
mod json;
mod kubeconfig;
mod logs;
mod negotiate;
mod openapi;
mod path;
mod non_api_paths;
mod protobuf;
mod query;
mod read;
mod request;
mod response;
mod serve;
mod service;
mod stall_timeout;
mod json_syntax;
mod table;
mod watch;
mod write;

pub use body::ResponseBody;
pub use kubeconfig::write_kubeconfig;
pub use serve::{ServeError, Serving};
pub use service::ApiService;
pub(crate) use json_syntax::go_words as json_fault;
