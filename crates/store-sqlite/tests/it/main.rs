//! The SQLite store: the contract, and what only a file can suffer.

mod suite;
