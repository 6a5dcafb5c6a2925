//! Spools as other programs see them: files, limits, hostile folders, killed writers, full disks.

mod full;
mod hostile;
mod kept;
mod killed;
mod relayed;
mod rotated;
mod support;
