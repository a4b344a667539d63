//! The API over HTTP.

mod body;
mod discovery;
mod dispatch;
mod json;
mod kubeconfig;
mod negotiate;
mod openapi;
mod path;
mod protobuf;
mod query;
mod serve;
mod service;
mod syntax;
mod table;
mod watch;

pub use body::ResponseBody;
pub use kubeconfig::write_kubeconfig;
pub use serve::{ServeError, Serving};
pub use service::ApiService;
pub(crate) use syntax::go_words as json_fault;
