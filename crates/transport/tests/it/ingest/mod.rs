//! Events from elsewhere, as their producers send them: over sockets.

mod broken;
mod mistakes;
mod stored;
