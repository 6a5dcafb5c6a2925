//! The one service behind every surface: start, wait, read, resume, cancel runs
