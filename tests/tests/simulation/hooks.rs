//! Hooks that do what the call says, bundles of them that contradict each other, and what each bundle must come to.

use std::sync::Arc;

use async_trait::async_trait;
use futures_util::FutureExt as _;
use tollgate_domain::{
    Arguments, Bundle, BundleSource, Candidate, Catalogue, Code, Decision, Digest, Enforcement, Finding, Hook, HookAnswer,
    HookDefinition, HookInput, Json, Locality, Message, Notice, NoticeFailed, Ownership, Refused, ResourceId, Selectors,
    Store as _, ToolAttributes, ToolEffect, Verdict,
};

use crate::world::World;

/// What a hook does with a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Act {
    Allow,
    Deny,
    /// Allows after a while.
    Slow,
    /// Never answers.
    Hang,
    Panic,
    Fail,
    Abstain,
}

/// What each hook of a chain does with a call: the call's arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Script(pub(crate) [Act; 3]);

const LETTERS: [(char, Act); 7] = [
    ('A', Act::Allow),
    ('D', Act::Deny),
    ('S', Act::Slow),
    ('H', Act::Hang),
    ('P', Act::Panic),
    ('F', Act::Fail),
    ('N', Act::Abstain),
];

impl Script {
    pub(crate) fn arguments(self) -> Arguments {
        let letter = |act| LETTERS.iter().find(|(_, named)| *named == act).unwrap().0;
        let script: String = self.0.into_iter().map(letter).collect();
        Arguments::parse(format!(r#"{{"script":"{script}"}}"#).as_bytes()).unwrap()
    }

    fn of(arguments: &Arguments) -> Self {
        let Json::Object(members) = arguments.value() else { panic!("arguments are an object") };
        let script = members.iter().find_map(|(name, value)| match value {
            Json::String(text) if &**name == "script" => Some(text),
            _ => None,
        });
        let acts: Vec<_> =
            script.unwrap().chars().map(|letter| LETTERS.iter().find(|(named, _)| *named == letter).unwrap().1).collect();
        Self(acts.try_into().unwrap())
    }
}

/// One hook of a chain.
#[expect(clippy::struct_excessive_bools, reason = "they are independent of each other")]
#[derive(Clone, Copy, Debug)]
struct Part {
    id: &'static str,
    order: i32,
    /// Which act of the script is its own.
    act: usize,
    /// Allows where the script says deny, and the other way round.
    contrary: bool,
    remote: bool,
    shadow: bool,
    wants_outcome: bool,
}

const fn part(id: &'static str, order: i32, act: usize) -> Part {
    Part { id, order, act, contrary: false, remote: false, shadow: false, wants_outcome: false }
}

/// The bundles. The hooks of one deny what those of another allow, so that an answer out of two would show.
const FLAVOURS: [&[Part]; 4] = [
    &[Part { wants_outcome: true, ..part("first", 1, 0) }, Part { wants_outcome: true, ..part("second", 2, 1) }],
    &[
        Part { contrary: true, wants_outcome: true, ..part("first", 1, 0) },
        Part { contrary: true, wants_outcome: true, ..part("second", 2, 1) },
        Part { shadow: true, wants_outcome: true, ..part("third", 3, 2) },
    ],
    &[
        Part { shadow: true, ..part("third", 1, 2) },
        Part { remote: true, wants_outcome: true, ..part("second", 2, 1) },
        part("first", 2, 0),
    ],
    &[
        Part { contrary: true, remote: true, wants_outcome: true, ..part("second", -1, 1) },
        Part { remote: true, ..part("first", 1, 0) },
    ],
];

/// The hook that every sidecar has of its own: it never allows, so that it changes nothing, but is asked and told.
const LOCAL: Part = Part { wants_outcome: true, ..part("local", 0, 0) };

/// Which bundle a digest is that of.
pub(crate) fn flavour_of(digest: &Digest) -> Option<usize> {
    (0..FLAVOURS.len()).find(|flavour| digest_of(*flavour) == *digest)
}

fn digest_of(flavour: usize) -> Digest {
    Digest::of(format!("flavour {flavour}").as_bytes())
}

/// What a bundle must come to for a call whose caller waits; `None` where a hook never answers.
pub(crate) fn verdict_of(flavour: usize, script: Script) -> Option<Decision> {
    let mut parts: Vec<_> = FLAVOURS[flavour].iter().collect();
    parts.sort_by_key(|part| (part.order, part.id));
    let mut allowed = false;
    for part in parts {
        match part.does(script) {
            Act::Hang => return None,
            _ if part.shadow => {}
            Act::Allow | Act::Slow => allowed = true,
            Act::Deny => return Some(Decision::Deny),
            Act::Panic | Act::Fail => return Some(Decision::Failed),
            Act::Abstain => {}
        }
    }
    Some(if allowed { Decision::Allow } else { Decision::Deny })
}

impl Part {
    fn does(self, script: Script) -> Act {
        match script.0[self.act] {
            Act::Allow if self.contrary => Act::Deny,
            Act::Deny if self.contrary => Act::Allow,
            act => act,
        }
    }

    fn definition(self, ownership: Ownership, world: &Arc<World>) -> HookDefinition {
        HookDefinition {
            id: self.id.parse().unwrap(),
            display_name: self.id.to_owned(),
            order: self.order,
            enforcement: if self.shadow { Enforcement::Shadow } else { Enforcement::Enforce },
            ownership,
            selectors: Selectors::default(),
            digest: Digest::of(format!("{self:?}").as_bytes()),
            hook: Arc::new(ScriptedHook { part: self, world: Arc::clone(world) }),
        }
    }
}

/// The hooks of every sidecar's own configuration.
pub(crate) fn local_hooks(world: &Arc<World>) -> Vec<Arc<HookDefinition>> {
    vec![Arc::new(LOCAL.definition(Ownership::Local, world))]
}

#[derive(Debug)]
struct ScriptedHook {
    part: Part,
    world: Arc<World>,
}

#[async_trait]
impl Hook for ScriptedHook {
    async fn evaluate(&self, input: HookInput<'_>) -> HookAnswer {
        let Part { id, .. } = self.part;
        let world = &self.world;
        if self.part.remote {
            let durable = world.durable.invocation(&input.call.run, input.invocation).now_or_never();
            let found = durable.unwrap().unwrap();
            world.require(found.is_some(), || {
                format!("remote hook {id} is asked about {} before it is on record", input.invocation)
            });
        }
        let code = |code: &str| Code::parse(code).unwrap();
        let act = if id == LOCAL.id { Act::Abstain } else { self.part.does(Script::of(&input.call.arguments)) };
        world.note(|| format!("ask {id} about {}: {act:?}", input.invocation));
        match act {
            Act::Allow => Verdict::Allowed,
            Act::Slow => {
                world.chance.pause(1..=120).await;
                Verdict::Allowed
            }
            Act::Deny => Verdict::Denied { code: code("denied"), message: Some(Message::new(format!("{id} says no"))) },
            Act::Fail => Verdict::Failed { code: code("broken") },
            Act::Abstain => Verdict::Abstained { code: code("silent") },
            Act::Hang => std::future::pending().await,
            // As a panic, but without a word on the standard error.
            Act::Panic => std::panic::resume_unwind(Box::new("a hook of the simulation panics")),
        }
        .into()
    }

    fn locality(&self) -> Locality {
        if self.part.remote { Locality::Remote } else { Locality::InProcess }
    }

    fn wants_outcome(&self) -> bool {
        self.part.wants_outcome
    }

    async fn notify(&self, notice: &Notice) -> Result<(), NoticeFailed> {
        let Part { id, .. } = self.part;
        let world = &self.world;
        world.notified(id, &notice.invocation);
        if world.chance.strikes(60) {
            std::future::pending::<()>().await;
        }
        if world.chance.strikes(20) {
            std::panic::resume_unwind(Box::new("a hook of the simulation panics"))
        }
        if world.chance.strikes(4) {
            world.chance.pause(1..=60).await;
        }
        if world.chance.one_in(6) { Err(NoticeFailed { code: Code::parse("untold").unwrap() }) } else { Ok(()) }
    }
}

/// Bundles of every flavour one after the other, and things that are none.
#[derive(Debug)]
pub(crate) struct Bundles {
    world: Arc<World>,
    offered: u64,
}

impl Bundles {
    pub(crate) const fn new(world: Arc<World>) -> Self {
        Self { world, offered: 0 }
    }

    fn bundle(&self, flavour: usize) -> Bundle {
        let chance = &self.world.chance;
        let managed = |part: &Part| {
            let resource = ResourceId::parse(&format!("hooks/{}", part.id)).unwrap();
            part.definition(Ownership::Organisation { resource }, &self.world)
        };
        let mut hooks: Vec<_> = FLAVOURS[flavour].iter().map(managed).collect();
        if self.offered > 0 && chance.one_in(12) {
            // A name that is taken.
            hooks.push(managed(&LOCAL));
        }
        let unknown = ToolAttributes {
            effect: ToolEffect::Write,
            open_world: false,
            requires_approval: false,
            labels: std::iter::empty().collect(),
        };
        // Mostly content that was there before.
        let edition = if chance.one_in(3) { chance.of(1..=1_000) } else { 0 };
        Bundle {
            name: "acme".parse().unwrap(),
            serial: (self.offered > 0 && chance.one_in(10)).then(|| chance.of(1..=5)),
            revision: format!("{flavour}.{edition}").parse().unwrap(),
            digest: digest_of(flavour),
            catalogue: Catalogue { unknown: Some(unknown), ..Catalogue::default() },
            hooks,
        }
    }
}

#[async_trait]
impl BundleSource for Bundles {
    async fn next(&mut self) -> Candidate {
        let chance = &self.world.chance;
        if self.offered > 0 {
            loop {
                chance.pause(20..=400).await;
                if chance.is_foul() {
                    break;
                }
            }
        }
        let bundle = self.bundle(usize::try_from(chance.of(0..=FLAVOURS.len() as u64 - 1)).unwrap());
        self.offered += 1;
        if self.offered > 1 && chance.one_in(6) {
            let findings = vec![Finding { code: "TG0204".to_owned(), path: "hooks/first.cedar".to_owned(), line: 1 }];
            return Err(Refused {
                bundle: Some(bundle.name),
                revision: bundle.revision,
                code: "invalid".parse().unwrap(),
                findings,
            });
        }
        Ok(bundle)
    }
}
