//! The client of a server, against one that misbehaves on purpose.

mod calls;
mod fake;
mod follow;
mod mischief;
mod push;
mod run;
