//! The client of a Taffrail server: starts runs, follows them, sends them events.
