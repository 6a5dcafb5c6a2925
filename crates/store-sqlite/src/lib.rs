//! The embedded SQLite store of Taffrail's relay
