//! The API over HTTP.

mod body;
mod context;
mod discovery;
mod dispatch;
mod identity;
mod json;
mod json_syntax;
mod kubeconfig;
mod logs;
mod negotiate;
mod non_api_paths;
mod openapi;
mod path;
mod port_forward;
mod protobuf;
mod query;
mod read;
mod request;
mod request_counts;
mod response;
mod serve;
mod service;
mod stall_timeout;
mod table;
mod watch;
mod write;

pub use body::ResponseBody;
pub(crate) use json_syntax::go_words as json_fault;
pub use kubeconfig::write_kubeconfig;
pub(crate) use request_counts::RequestCounts;
pub use serve::{ServeError, Serving};
pub use service::ApiService;
