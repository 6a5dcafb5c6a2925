//! Playbooks in a folder, by name.
//!
//! A name is kebab-case and nothing else, so it can name no file outside the folder. The file's stem must be the name in
//! the file: what a person sees in the folder is what a caller types.

mod calls;
#[cfg(test)]
mod tests;

use std::{
    fs, io,
    io::Read,
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{
    contract::Contract,
    diagnostic::{Diagnostic, Position, Report, Severity, suggestion},
    model::Playbook,
    names,
    parse::{Parsed, parse},
    yaml::MAX_SOURCE_BYTES,
};

/// Endings of playbook files.
const EXTENSIONS: [&str; 3] = ["yaml", "yml", "json"];

/// Deepest chain of calls, the first playbook included.
pub const MAX_CALL_DEPTH: usize = 16;

/// A folder of playbooks. Reads the disk on each call and keeps nothing, so that an edit counts at once; blocking.
#[derive(Debug, Clone)]
pub struct Library {
    folder: PathBuf,
}

/// A playbook could not be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LibraryError {
    /// The text is no name of a playbook.
    #[error("`{name}` is not the name of a playbook: names are kebab-case, such as `deploy-one`")]
    BadName {
        /// The text.
        name: String,
    },
    /// There is no such playbook.
    #[error("no playbook `{name}` in {}{}", folder.display(), help.as_ref().map(|help| format!("; {help}")).unwrap_or_default())]
    NotFound {
        /// The name.
        name: String,
        /// Where it was looked for.
        folder: PathBuf,
        /// A sentence that leads to a right name.
        help: Option<String>,
    },
    /// Several files could be meant.
    #[error("playbook `{name}` is there more than once: {}", list(paths))]
    Ambiguous {
        /// The name.
        name: String,
        /// The files.
        paths: Vec<PathBuf>,
    },
    /// A file or the folder cannot be read.
    #[error("cannot read {}", path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The file is no playbook that can run.
    #[error("{}", told(diagnostics))]
    Invalid {
        /// Everything that is wrong with it; at least one error.
        diagnostics: Vec<Diagnostic>,
    },
}

/// A playbook that was read, with what to warn of.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// The playbook.
    pub playbook: Arc<Playbook>,
    /// The file.
    pub path: PathBuf,
    /// Warnings.
    pub warnings: Vec<Diagnostic>,
}

/// One file of the folder.
#[derive(Debug, Clone)]
pub struct Listed {
    /// The file's stem, by which it is called.
    pub name: String,
    /// The file.
    pub path: PathBuf,
    /// What it promises; or the first thing that is wrong with it.
    pub contract: Result<Contract, Diagnostic>,
}

impl Library {
    /// A library over a folder, which need not exist yet.
    #[must_use]
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into() }
    }

    /// The folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Finds a playbook by name and reads it.
    ///
    /// # Errors
    /// When the name is none, there is no such file or more than one, or the file is no playbook of that name.
    pub fn load(&self, name: &str) -> Result<Loaded, LibraryError> {
        self.load_path(&self.path_of(name)?)
    }

    /// Reads a playbook from a file anywhere. For callers that share this disk only.
    ///
    /// # Errors
    /// When the file cannot be read or is no playbook with the name of the file.
    pub fn load_path(&self, path: &Path) -> Result<Loaded, LibraryError> {
        let Parsed { playbook, diagnostics } = read(path)?;
        match playbook {
            Some(playbook) => Ok(Loaded { playbook: Arc::new(playbook), path: path.to_owned(), warnings: diagnostics }),
            None => Err(LibraryError::Invalid { diagnostics }),
        }
    }

    /// Reads a playbook given as people give it: a name, or a path, which has a separator or an ending.
    ///
    /// # Errors
    /// As [`Library::load`] and [`Library::load_path`].
    pub fn find(&self, name_or_path: &str) -> Result<Loaded, LibraryError> {
        if is_path(name_or_path) { self.load_path(Path::new(name_or_path)) } else { self.load(name_or_path) }
    }

    /// Checks a source, and the calls in it against this folder: that called playbooks exist and can run, that their
    /// inputs are given, and that chains of calls are not deeper than [`MAX_CALL_DEPTH`]. Calls that come back to a
    /// playbook they started from are warned of; the depth ends them when they run.
    #[must_use]
    pub fn check(&self, source: &str, origin: &str) -> Parsed {
        let Parsed { playbook, mut diagnostics } = parse(source, origin);
        let Some(playbook) = playbook else { return Parsed { playbook: None, diagnostics } };
        let mut report = Report::new(origin);
        calls::check(self, &playbook, &mut report);
        let good = !report.has_errors();
        diagnostics.extend(report.into_diagnostics());
        diagnostics.sort_by_key(|diagnostic| (diagnostic.line, diagnostic.column));
        Parsed { playbook: Some(playbook).filter(|_| good), diagnostics }
    }

    /// Checks a file as [`Library::check`] does.
    ///
    /// # Errors
    /// When the file cannot be read at all.
    pub fn check_path(&self, path: &Path) -> Result<Parsed, LibraryError> {
        let named = read(path)?;
        match &named.playbook {
            None => Ok(named),
            Some(playbook) => Ok(self.check(&playbook.source, &path.display().to_string())),
        }
    }

    /// All playbook files of the folder, by name; broken ones with what is wrong. A folder that does not exist is empty.
    ///
    /// # Errors
    /// When the folder cannot be read.
    pub fn list(&self) -> Result<Vec<Listed>, LibraryError> {
        let files = self.files()?;
        Ok(files
            .into_iter()
            .map(|(name, path)| {
                let contract = match read(&path) {
                    Ok(Parsed { playbook: Some(playbook), .. }) => Ok(Contract::of(&playbook)),
                    Ok(Parsed { diagnostics, .. }) => Err(first(diagnostics, &path)),
                    Err(error) => Err(whole_file(&path, unread(&error))),
                };
                Listed { name, path, contract }
            })
            .collect())
    }

    /// The names of the folder's files, good or broken.
    ///
    /// # Errors
    /// When the folder cannot be read.
    pub fn names(&self) -> Result<Vec<String>, LibraryError> {
        let mut names: Vec<String> = self.files()?.into_iter().map(|(name, _)| name).collect();
        names.dedup();
        Ok(names)
    }

    fn path_of(&self, name: &str) -> Result<PathBuf, LibraryError> {
        if !names::is_kebab(name) {
            return Err(LibraryError::BadName { name: name.to_owned() });
        }
        let candidates = EXTENSIONS.iter().map(|extension| self.folder.join(format!("{name}.{extension}")));
        let mut paths: Vec<PathBuf> = candidates.filter(|path| path.is_file()).collect();
        match (paths.pop(), paths.is_empty()) {
            (Some(path), true) => Ok(path),
            (Some(path), false) => {
                paths.push(path);
                Err(LibraryError::Ambiguous { name: name.to_owned(), paths })
            }
            (None, _) => {
                let known = self.names().unwrap_or_default();
                let known: Vec<&str> = known.iter().map(String::as_str).collect();
                Err(LibraryError::NotFound {
                    name: name.to_owned(),
                    folder: self.folder.clone(),
                    help: suggestion(name, &known),
                })
            }
        }
    }

    /// Stem and path of each file, sorted.
    fn files(&self) -> Result<Vec<(String, PathBuf)>, LibraryError> {
        let failed = |source| LibraryError::Io { path: self.folder.clone(), source };
        let entries = match fs::read_dir(&self.folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(failed(error)),
        };
        let mut files = Vec::new();
        for entry in entries {
            let path = entry.map_err(failed)?.path();
            let known = path.extension().is_some_and(|found| EXTENSIONS.iter().any(|extension| found == *extension));
            if known && path.is_file() {
                files.push((stem(&path), path));
            }
        }
        files.sort();
        Ok(files)
    }
}

/// Whether a text given for a playbook is a path rather than a name.
#[must_use]
pub fn is_path(name_or_path: &str) -> bool {
    name_or_path.contains(['/', '\\'])
        || EXTENSIONS.iter().any(|extension| {
            name_or_path.strip_suffix(extension).is_some_and(|stem| stem.len() > 1 && stem.ends_with('.'))
        })
}

/// Reads and parses a file, and compares the two names.
fn read(path: &Path) -> Result<Parsed, LibraryError> {
    let failed = |source| LibraryError::Io { path: path.to_owned(), source };
    let origin = path.display().to_string();
    let file = fs::File::open(path).map_err(failed)?;
    if !file.metadata().map_err(failed)?.is_file() {
        return Err(failed(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file")));
    }
    let mut bytes = Vec::new();
    // One byte more than allowed, so that the parser sees that it is too much.
    let limit = u64::try_from(MAX_SOURCE_BYTES).unwrap_or(u64::MAX).saturating_add(1);
    file.take(limit).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() > MAX_SOURCE_BYTES {
        let message = format!("file is longer than {MAX_SOURCE_BYTES} bytes");
        return Ok(Parsed { playbook: None, diagnostics: vec![whole_file(path, message)] });
    }
    let source = match String::from_utf8(bytes) {
        Ok(source) => source,
        Err(error) => {
            let good = error.as_bytes().get(..error.utf8_error().valid_up_to()).unwrap_or_default();
            let line = 1 + good.iter().filter(|byte| **byte == b'\n').count();
            let mut report = Report::new(&origin);
            report.error(Position { line, column: 1 }, "this line is not UTF-8");
            return Ok(Parsed { playbook: None, diagnostics: report.into_diagnostics() });
        }
    };
    let Parsed { playbook, mut diagnostics } = parse(&source, &origin);
    let Some(playbook) = playbook else { return Ok(Parsed { playbook, diagnostics }) };
    let stem = stem(path);
    if playbook.name == stem {
        return Ok(Parsed { playbook: Some(playbook), diagnostics });
    }
    let mut report = Report::new(&origin);
    report.error_help(
        calls::position_of(&source, &["playbook"]),
        format!("the playbook is called `{}`, its file `{stem}`", playbook.name),
        format!("the two must be equal: rename the file to `{}.yaml`, or the playbook", playbook.name),
    );
    diagnostics.splice(0..0, report.into_diagnostics());
    Ok(Parsed { playbook: None, diagnostics })
}

fn stem(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

fn first(diagnostics: Vec<Diagnostic>, path: &Path) -> Diagnostic {
    let error = diagnostics.into_iter().find(|diagnostic| diagnostic.severity == Severity::Error);
    error.unwrap_or_else(|| whole_file(path, "not a playbook".to_owned()))
}

fn whole_file(path: &Path, message: String) -> Diagnostic {
    let Position { line, column } = Position::START;
    let origin = path.display().to_string();
    Diagnostic { severity: Severity::Error, origin, line, column, message, help: None }
}

fn unread(error: &LibraryError) -> String {
    match error {
        LibraryError::Io { source, .. } => format!("cannot be read: {source}"),
        other => other.to_string(),
    }
}

fn told(diagnostics: &[Diagnostic]) -> String {
    diagnostics.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

fn list(paths: &[PathBuf]) -> String {
    paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
}
