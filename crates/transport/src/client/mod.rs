//! A client of a taffrail server: start, follow, read, decide, cancel, and send events of runs that happen here.
//!
//! [`Client`] has a call for each endpoint. [`Client::follow`] is what most programs want: the records of a run or a
//! thread, each once, in order, to the end, through restarts of the server, broken connections and proxies that hold
//! event streams back. [`Client::push`] is the other way round: it sends the events of a run that happens here.
//!
//! What is not here: retries of calls (a caller knows whether that is wise; [`ClientError::is_transient`] tells whether
//! it may help), terminals, files.
//!
//! ```no_run
//! use taffrail_mcp_core::{RunId, Start};
//! use taffrail_transport::client::{Client, ClientConfig, ClientError, Followed, ServerUrl, Token};
//!
//! async fn watch(run: RunId) -> Result<(), ClientError> {
//!     let url = ServerUrl::new("http://127.0.0.1:7433")?;
//!     let client = Client::new(ClientConfig::new(url, Some(Token::new("secret")?)))?;
//!     let mut follow = client.follow(run, Start::Beginning);
//!     while let Some(item) = follow.next().await {
//!         match item? {
//!             Followed::Record { seq, line } => println!("{seq}: {}", line.escape_ascii()),
//!             Followed::Gap(gap) => println!("records {} to {} are gone", gap.from, gap.to),
//!             Followed::Connection(_) => {}
//!             Followed::End(snapshot) => println!("it is {}", snapshot.status.as_str()),
//!         }
//!     }
//!     Ok(())
//! }
//! ```

mod api;
mod backoff;
mod call;
mod config;
mod error;
mod follow;
mod jitter;
mod push;
mod sse;
mod tls;
mod wire;

pub use self::{
    api::{Client, Decide, Entry, EventPage, EventQuery, IngestAnswer, IngestBatch, ListRuns, StartRun, StartWork},
    config::{ClientConfig, FollowConfig, RetryConfig, ServerUrl, Token},
    error::{ClientError, Refusal},
    follow::{Connection, Follow, Followed, Target},
    push::{Batch, Push, PushRun, Pushed, Source},
};
