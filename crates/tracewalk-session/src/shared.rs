//! A cache that sessions share, so that many captures of one program cost little more than their bytes.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tracewalk::ids::Address;
use tracewalk::program::{Program, Scope};
use tracewalk::source::SourceConfig;
use tracewalk_analysis::call_stack::Task;
use tracewalk_analysis::drive::{Follower, Learned};
use tracewalk_analysis::programs::ProgramId;
use tracewalk_analysis::{Code, Interrupts};
use tracewalk_input::cpu::Profile;
use tracewalk_input::image::{Image, SharedImages, VisibleImage};

/// A cache of images, programs, and what was learned by following them. Each session has one, its own or that of several.
///
/// Answers do not depend on it, with one exception: notices about a program's names are given once, to the
/// observer of the session that read them. Clones share the same cache, in any number of threads.
///
/// ```
/// use tracewalk_session::{Follow, Request, Session, Shared};
///
/// let shared = Shared::default();
/// for capture in ["../../testdata/examples/a7-etmv3/capture.toml"; 2] {
///     let request = Request { shared: Some(shared.clone()), ..Request::new(capture) };
///     let (mut session, notices) = Session::open(request)?;
///     let source = session.sources()[0].clone();
///     let outcome = session.counts(&source, &Follow::default(), capture, &tracewalk_session::Notices::default())?;
///     assert!(outcome.complete);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Shared {
    pub(crate) images: SharedImages,
    kept: Arc<Mutex<Kept>>,
}

#[derive(Debug, Default)]
struct Kept {
    programs: Recent<Vec<(ByContent, Scope)>, Arc<Program>>,
    codes: Recent<CodeKey, Arc<Code>>,
    ids: Recent<Identified, ProgramId>,
    learned: Recent<LearnedKey, Vec<Learned>>,
}

/// The key of a program that is made from images alone.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CodeKey {
    pub(crate) images: Vec<(ByContent, Scope)>,
    /// Whether code that is visible only in some contexts is left out of the view of all contexts.
    pub(crate) leaves_out: bool,
    pub(crate) vector_table: Option<Address>,
    pub(crate) interrupts: Interrupts,
    pub(crate) threads: BTreeMap<Task, String>,
    pub(crate) profile: Option<Profile>,
    /// The directories for names and lines, those beside the images included; `None` if these are not wanted.
    pub(crate) source_dirs: Option<Vec<PathBuf>>,
}

/// A program or a file whose identity depends on all of its bytes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Identified {
    /// The program made from these images.
    Program(Vec<(ByContent, Scope)>),
    /// The file of an image.
    File(ByContent),
}

/// An image, compared by content.
#[derive(Clone, Debug)]
pub(crate) struct ByContent(Arc<Image>);

impl PartialEq for ByContent {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0.is_copy_of(&other.0)
    }
}

impl ByContent {
    pub(crate) fn of(image: &Arc<Image>) -> Self {
        Self(Arc::clone(image))
    }

    pub(crate) fn scoped(images: &[VisibleImage]) -> Vec<(Self, Scope)> {
        images.iter().map(|visible| (Self::of(&visible.image), visible.scope)).collect()
    }
}

/// The key of learned effects: a program, and the configuration of a source.
#[derive(Clone, Debug)]
struct LearnedKey {
    program: Arc<Program>,
    config: SourceConfig,
}

impl PartialEq for LearnedKey {
    fn eq(&self, other: &Self) -> bool {
        // An MTB's flow depends on the place of the vector table, which only the same program has for sure.
        self.config == other.config
            && (Arc::ptr_eq(&self.program, &other.program)
                || !matches!(self.config, SourceConfig::Mtb(_)) && is_same(&self.program, &other.program))
    }
}

/// The most values kept of each kind: the most recently used.
const MOST: usize = 32;

/// The values used recently, the most recent at the end.
#[derive(Debug)]
struct Recent<K, V>(Vec<(K, V)>);

impl<K, V> Default for Recent<K, V> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<K: PartialEq, V> Recent<K, V> {
    fn get(&mut self, key: &K) -> Option<&mut V> {
        let index = self.0.iter().position(|(known, _)| known == key)?;
        let found = self.0.remove(index);
        self.0.push(found);
        self.0.last_mut().map(|(_, value)| value)
    }

    fn put(&mut self, key: K, value: V) -> &mut V {
        if self.0.len() >= MOST {
            self.0.remove(0);
        }
        self.0.push((key, value));
        let last = self.0.len() - 1;
        &mut self.0[last].1
    }
}

impl Shared {
    /// The program of images alone; equal images share one program.
    pub(crate) fn program(
        &self,
        images: Vec<(ByContent, Scope)>,
        make: impl FnOnce() -> Program,
    ) -> Arc<Program> {
        let programs = &mut self.kept().programs;
        match programs.get(&images) {
            Some(known) => Arc::clone(known),
            None => Arc::clone(programs.put(images, Arc::new(make()))),
        }
    }

    /// The program with this key, if it is kept.
    pub(crate) fn code(&self, key: &CodeKey) -> Option<Arc<Code>> {
        self.kept().codes.get(key).cloned()
    }

    /// Keeps a program for others. Returns the one that all use, because another thread may have been first.
    pub(crate) fn keep_code(&self, key: CodeKey, code: Arc<Code>) -> Arc<Code> {
        let codes = &mut self.kept().codes;
        match codes.get(&key) {
            Some(known) => Arc::clone(known),
            None => Arc::clone(codes.put(key, code)),
        }
    }

    /// The identity of a program or a file, worked out once.
    pub(crate) fn program_id<E>(
        &self,
        of: Identified,
        work_out: impl FnOnce() -> Result<ProgramId, E>,
    ) -> Result<ProgramId, E> {
        if let Some(id) = self.kept().ids.get(&of) {
            return Ok(id.clone());
        }
        let id = work_out()?;
        self.kept().ids.put(of, id.clone());
        Ok(id)
    }

    /// A follower with kept effects of the program, if any are left; each follower takes its own.
    pub(crate) fn follower<'p>(&self, config: &'p SourceConfig, program: &'p Arc<Program>) -> Follower<'p> {
        let key = LearnedKey { program: Arc::clone(program), config: config.clone() };
        match self.kept().learned.get(&key).and_then(Vec::pop) {
            Some(learned) => Follower::knowing(config, program, learned),
            None => Follower::new(config, program),
        }
    }

    /// Keeps learned effects for others.
    pub(crate) fn keep_learned(&self, config: &SourceConfig, program: &Arc<Program>, learned: Learned) {
        let key = LearnedKey { program: Arc::clone(program), config: config.clone() };
        let all = &mut self.kept().learned;
        match all.get(&key) {
            Some(known) => known.push(learned),
            None => _ = all.put(key, vec![learned]),
        }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether contexts see the same bytes at the same places in two programs. The place of the vector table is not compared.
pub(crate) fn is_same(one: &Program, other: &Program) -> bool {
    fn all(program: &Program) -> impl Iterator<Item = (Scope, Address, &[u8])> {
        program.all_regions().map(|(scope, region)| (scope, region.start(), region.bytes()))
    }
    one.leaves_out_address_spaces() == other.leaves_out_address_spaces() && all(one).eq(all(other))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_asked_for_last_is_kept() {
        let mut recent = Recent::default();
        for key in 0..MOST {
            recent.put(key, key * 2);
        }
        assert_eq!(recent.get(&0), Some(&mut 0));
        recent.put(MOST, 1);
        assert_eq!(recent.get(&0), Some(&mut 0));
        assert_eq!(recent.get(&1), None);
        assert_eq!(recent.get(&MOST), Some(&mut 1));
    }
}
