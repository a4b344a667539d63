//! One replica among others: it renews its own Lease, watches those of the others, and takes and gives slots.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
    time::Duration,
};

use tiphys_cluster::{Cluster, ClusterError, Fence, Propagation};
use tiphys_value::{ObjectExt, Value};
use tokio::time::{Instant, sleep, timeout};

use super::{
    leases::{FIELD_MANAGER, Holder, Member, TABLE, Table, kind},
    share::Share,
    slots::{Slot, SlotSet, divided},
};

/// The times by which replicas go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Timing {
    /// How often a replica renews its Lease and looks at those of the others.
    pub every: Duration,
    /// For how long after a renewal a replica writes: less than `holds`, so that it has stopped before another
    /// one may begin, also if their clocks do not run alike.
    pub writes: Duration,
    /// How long a Lease holds after the others have seen it renewed.
    pub holds: Duration,
    /// How long the Lease of the table holds. Only engines that share otherwise go by it.
    pub group: Duration,
    /// How long one attempt to renew or to look may take.
    pub attempt: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            every: Duration::from_millis(1500),
            writes: Duration::from_secs(7),
            holds: Duration::from_secs(10),
            group: Duration::from_secs(15),
            attempt: Duration::from_secs(3),
        }
    }
}

/// How many times in a row a table is looked at anew because somebody else's write came before.
const RACES: usize = 4;

/// Why a replica must stop.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Lost {
    /// The others saw its Lease expire, or somebody deleted it.
    #[error("its Lease was not renewed in time, so that other replicas have taken over")]
    Expired,
    /// An engine that shares otherwise, or not at all, holds the Lease.
    #[error("{0} holds the Lease {TABLE}")]
    TakenBy(String),
    /// The table gives what it has to another one, though nobody may do that.
    #[error("the Lease {TABLE} was changed by somebody who is no replica")]
    Table,
}

/// Why a replica does not join the others.
#[derive(Clone, Debug, thiserror::Error)]
pub enum JoinError {
    /// The cluster has no Leases, or refuses them.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    /// It could be a replica for a moment only.
    #[error(transparent)]
    Lost(#[from] Lost),
}

impl JoinError {
    /// Whether a right on Leases is missing.
    pub fn is_forbidden(&self) -> bool {
        matches!(self, Self::Cluster(error) if error.is_forbidden())
    }
}

/// What is known of a Lease that others renew, by this clock alone: those of two machines may differ.
struct Observed {
    version: String,
    at: Instant,
}

/// When others were last seen to renew.
#[derive(Default)]
struct Sightings {
    seen: HashMap<String, Observed>,
    last: Option<Instant>,
}

impl Sightings {
    /// Begins a look. What could have been renewed while nothing could be seen starts anew: nobody is to lose
    /// its Lease because the cluster answered nobody.
    fn begin(&mut self, longest_gap: Duration) {
        let now = Instant::now();
        if self.last.is_some_and(|last| now - last > longest_gap) {
            self.seen.values_mut().for_each(|observed| observed.at = now);
        }
        self.last = Some(now);
    }

    /// How long something stands at one version.
    fn age(&mut self, what: &str, version: &str) -> Duration {
        match self.seen.get(what) {
            Some(known) if known.version == version => known.at.elapsed(),
            _ => {
                let observed = Observed { version: version.to_owned(), at: Instant::now() };
                self.seen.insert(what.to_owned(), observed);
                Duration::ZERO
            }
        }
    }

    fn retain(&mut self, is_there: impl Fn(&str) -> bool) {
        self.seen.retain(|what, _| is_there(what));
    }
}

/// What the Leases say.
struct View {
    table: Option<Value>,
    members: Vec<Member>,
}

/// Who lives, as one look shows.
#[derive(Default)]
struct Living {
    /// Replicas that may have slots, this one included.
    live: BTreeSet<String>,
    /// Those of which it is certain that they write nothing more.
    dead: BTreeSet<String>,
}

/// Where a replica is one, under which name, and by which times.
#[derive(Clone)]
struct Seat {
    cluster: Cluster,
    namespace: String,
    name: String,
    timing: Timing,
}

/// The failure that was last warned of: one that lasts is not told each time.
#[derive(Default)]
struct Warned(String);

impl Warned {
    /// Whether a failure says something else than the last one.
    fn is_new(&mut self, error: &ClusterError) -> bool {
        let text = error.to_string();
        let is_new = text != self.0;
        self.0 = text;
        is_new
    }

    /// Notes that there is no failure any more.
    fn clear(&mut self) {
        self.0.clear();
    }
}

/// One of several engines that share the work.
pub struct Replica {
    seat: Seat,
    share: Arc<Share>,
    renewal: Renewal,
    division: Division,
}

/// A replica's own Lease.
struct Renewal {
    seat: Seat,
    fence: Fence,
    lease: Value,
    warned: Warned,
}

/// The part of a replica that takes and gives slots.
struct Division {
    seat: Seat,
    share: Arc<Share>,
    sightings: Sightings,
    has_begun: bool,
    warned: Warned,
    members: usize,
}

impl Replica {
    /// Joins the replicas of a namespace, and takes what falls to it. Waits while an engine that shares
    /// otherwise holds the Lease; `tell` is told who. No replica may have or have had `name`: see
    /// [`replica_name`].
    ///
    /// # Errors
    /// See [`JoinError`].
    pub async fn join(
        cluster: &Cluster,
        namespace: &str,
        name: &str,
        tell: impl FnMut(&str),
    ) -> Result<Self, JoinError> {
        let timing = Timing::default();
        wait_for_others(cluster, namespace, &timing, tell).await?;
        let lease = Member::renewed(namespace, name, None, &timing);
        let began = Instant::now();
        let lease = patiently(async || cluster.create(&lease, FIELD_MANAGER, false).await, &timing).await?;
        let fence = Fence::default();
        fence.open_until(began + timing.writes);
        let share = Arc::new(Share::new(fence.clone()));
        let seat =
            Seat { cluster: cluster.clone(), namespace: namespace.to_owned(), name: name.to_owned(), timing };
        let renewal = Renewal { seat: seat.clone(), fence, lease, warned: Warned::default() };
        let division = Division {
            seat: seat.clone(),
            share: share.clone(),
            sightings: Sightings::default(),
            has_begun: false,
            warned: Warned::default(),
            members: 0,
        };
        let mut replica = Self { seat, share, renewal, division };
        // A failure that passes is told of; what falls to this replica is taken later.
        replica.division.tick().await?;
        replica.division.has_begun = true;
        Ok(replica)
    }

    /// Its name, which no other replica has or had.
    pub fn name(&self) -> &str {
        &self.seat.name
    }

    /// What it has of the work, for [`crate::Settings::share`].
    pub fn share(&self) -> Arc<Share> {
        self.share.clone()
    }

    /// Keeps the Lease and the share of the work until they are lost.
    pub async fn keep(&mut self) -> Lost {
        let (renewal, division) = (&mut self.renewal, &mut self.division);
        let lost = tokio::select! {
            lost = renewal.keep() => lost,
            lost = division.keep() => lost,
        };
        self.share.fence().end();
        lost
    }

    /// Leaves the others: they may take over at once. Only for whoever is certain that nothing more of this
    /// replica is on its way; all others let the Lease expire.
    pub async fn leave(self) {
        self.share.fence().end();
        // Whoever comes next waits for the Lease to expire if this fails.
        for _ in 0..RACES {
            let Ok(resource) = self.seat.cluster.resource(&kind()).await else { return };
            let Ok(there) = self.seat.cluster.get(&resource, &self.seat.namespace, TABLE).await else {
                return;
            };
            let Some(there) = there.filter(|lease| Holder::read(lease) == Holder::Replicas) else { break };
            let mut table = Table::read(&there);
            if table.owners.remove(&self.seat.name).is_none() {
                break;
            }
            let lease = table.object(&self.seat.namespace, Some(&there), &self.seat.timing);
            match self.seat.cluster.replace(&lease, FIELD_MANAGER, false).await {
                Ok(_) => break,
                Err(error) if error.is_conflict() => {}
                Err(_) => return,
            }
        }
        self.renewal.delete().await;
    }
}

/// A name for a replica that no other one has or had. `identity` is for people; it need not be unique.
pub fn replica_name(identity: &str) -> String {
    const MOST: usize = 200;
    let is_allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let text: String =
        identity.to_lowercase().chars().map(|c| if is_allowed(c) { c } else { '-' }).take(MOST).collect();
    let moment = jiff::Timestamp::now().as_nanosecond();
    let text = text.trim_matches('-');
    match text.is_empty() {
        true => format!("tiphys-{moment:x}"),
        false => format!("tiphys-{text}-{moment:x}"),
    }
}

/// Waits until no engine that shares otherwise holds the Lease.
async fn wait_for_others(
    cluster: &Cluster,
    namespace: &str,
    timing: &Timing,
    mut tell: impl FnMut(&str),
) -> Result<(), ClusterError> {
    let mut sightings = Sightings::default();
    let mut told = String::new();
    let resource = patiently(async || cluster.resource(&kind()).await, timing).await?;
    loop {
        sightings.begin(timing.writes);
        let there = patiently(async || cluster.get(&resource, namespace, TABLE).await, timing).await?;
        let Some(lease) = there else { return Ok(()) };
        let Holder::Other(holder) = Holder::read(&lease) else { return Ok(()) };
        if sightings.age(TABLE, lease.resource_version()) > holds(&lease, timing) {
            let taken = Table::default().object(namespace, Some(&lease), timing);
            match cluster.replace(&taken, FIELD_MANAGER, false).await {
                Ok(_) => return Ok(()),
                Err(error) if error.is_conflict() || error.is_transient() => continue,
                Err(error) => return Err(error),
            }
        }
        if told != holder {
            tell(&holder);
            told = holder;
        }
        sleep(timing.every).await;
    }
}

/// How long the Lease of another engine holds.
fn holds(lease: &Value, timing: &Timing) -> Duration {
    let seconds = lease.int_at(&["spec", "leaseDurationSeconds"]).and_then(|n| u64::try_from(n).ok());
    seconds.map_or(timing.group, Duration::from_secs)
}

/// Asks until there is an answer, or a failure that does not pass.
async fn patiently<T>(
    ask: impl AsyncFn() -> Result<T, ClusterError>,
    timing: &Timing,
) -> Result<T, ClusterError> {
    loop {
        match ask().await {
            Err(error) if error.is_transient() => sleep(timing.every).await,
            answer => return answer,
        }
    }
}

/// An answer, or the failure that none came in time.
async fn within<T>(
    limit: Duration,
    answer: impl Future<Output = Result<T, ClusterError>>,
) -> Result<T, ClusterError> {
    let late = |_| Err(ClusterError::Transport(format!("no answer within {limit:?}")));
    timeout(limit, answer).await.unwrap_or_else(late)
}

impl Renewal {
    async fn keep(&mut self) -> Lost {
        loop {
            sleep(self.seat.timing.every).await;
            match within(self.seat.timing.attempt, self.renew()).await {
                Ok(true) => self.warned.clear(),
                Ok(false) => return Lost::Expired,
                Err(error) if self.warned.is_new(&error) => {
                    tracing::warn!(lease = %self.seat.name, %error, "cannot renew the Lease; it is tried again, and nothing is written without it");
                }
                Err(_) => {}
            }
        }
    }

    /// Renews the Lease; `false` if it is no longer this replica's.
    async fn renew(&mut self) -> Result<bool, ClusterError> {
        loop {
            let began = Instant::now();
            let lease =
                Member::renewed(&self.seat.namespace, &self.seat.name, Some(&self.lease), &self.seat.timing);
            match self.seat.cluster.replace(&lease, FIELD_MANAGER, false).await {
                Ok(written) => {
                    self.lease = written;
                    self.fence.open_until(began + self.seat.timing.writes);
                    return Ok(true);
                }
                Err(error) if error.is_conflict() || error.is_not_found() => {}
                Err(error) => return Err(error),
            }
            // Somebody wrote it; perhaps this replica, and the answer was lost.
            let resource = self.seat.cluster.resource(&kind()).await?;
            let there = self.seat.cluster.get(&resource, &self.seat.namespace, &self.seat.name).await?;
            match there {
                Some(lease) if Member::read(&lease).is_some_and(|member| !member.is_evicted) => {
                    self.lease = lease;
                }
                _ => return Ok(false),
            }
        }
    }

    async fn delete(&self) {
        let Ok(resource) = self.seat.cluster.resource(&kind()).await else { return };
        let name = (self.seat.namespace.as_str(), self.seat.name.as_str());
        // One that stays expires.
        let _ =
            self.seat.cluster.delete(&resource, name, Propagation::Background, self.lease.uid(), false).await;
    }
}

impl Division {
    async fn keep(&mut self) -> Lost {
        loop {
            sleep(self.seat.timing.every).await;
            if let Err(lost) = self.tick().await {
                return lost;
            }
        }
    }

    /// Looks at all Leases once, and takes and gives what is to be taken and given.
    async fn tick(&mut self) -> Result<(), Lost> {
        for _ in 0..RACES {
            if !self.share.fence().is_open() {
                // Whether this replica still is one is found out first.
                return Ok(());
            }
            let looked = within(self.seat.timing.attempt, self.read_leases()).await;
            let divided = match looked {
                Ok(view) => self.divide(view).await?,
                Err(error) => Err(error),
            };
            match divided {
                Ok(()) => {
                    self.warned.clear();
                    return Ok(());
                }
                Err(error) if error.is_conflict() => {}
                Err(error) => {
                    if self.warned.is_new(&error) {
                        tracing::warn!(%error, "cannot share the work with other replicas; it is tried again");
                    }
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// The table is read before the replicas: whoever is in it had a Lease before.
    async fn read_leases(&mut self) -> Result<View, ClusterError> {
        let resource = self.seat.cluster.resource(&kind()).await?;
        let table = self.seat.cluster.get(&resource, &self.seat.namespace, TABLE).await?;
        let leases = self.seat.cluster.list(&resource, &self.seat.namespace).await?.items;
        self.sightings.begin(self.seat.timing.writes);
        Ok(View { table, members: leases.iter().filter_map(Member::read).collect() })
    }

    /// Takes and gives. The inner error means that nothing is certain: all has to be looked at again.
    async fn divide(&mut self, view: View) -> Result<Result<(), ClusterError>, Lost> {
        let there = view.table.as_ref();
        if let Some(Holder::Other(holder)) = there.map(Holder::read) {
            return Err(Lost::TakenBy(holder));
        }
        if !view.members.iter().any(|member| member.name == self.seat.name && !member.is_evicted) {
            return Err(Lost::Expired);
        }
        let table = there.map(Table::read).unwrap_or_default();
        let living = match self.living(&view, &table).await {
            Ok(living) => living,
            Err(error) => return Ok(Err(error)),
        };
        self.note_members(living.live.len());
        let mut new = table.clone();
        new.owners.retain(|member, _| !living.dead.contains(member));
        let is_alone = living.live.len() == 1 && new.owners.keys().all(|member| *member == self.seat.name);
        // Whoever works has seen a new table, and put what it has into it, or has stopped.
        let uid = there.map(ObjectExt::uid).unwrap_or_default();
        let has_stood = there.is_some() && self.sightings.age("table", uid) > self.seat.timing.holds;
        new.is_settled = table.is_settled || is_alone || has_stood;
        let taken = match self.change(&table, &mut new, &living) {
            Ok(taken) => taken,
            Err(lost) => return Err(lost),
        };
        if let Err(error) = self.write(there, &table, &new).await {
            return Ok(Err(error));
        }
        if !taken.is_empty() {
            self.share.take(&taken, !self.has_begun);
        }
        self.clear_away(&view, &living).await;
        Ok(Ok(()))
    }

    /// Puts into a table what this replica gives and takes; what it takes.
    fn change(&self, table: &Table, new: &mut Table, living: &Living) -> Result<SlotSet, Lost> {
        let owners = divided(living.live.iter().map(String::as_str));
        let wanted: SlotSet =
            owners.iter().filter(|(_, member)| **member == self.seat.name).map(|(slot, _)| *slot).collect();
        self.share.let_go(&self.share.slots().difference(&wanted).copied().collect());
        // From here on they are not worked on, whether or not the table can be written.
        self.share.given_back();
        let held = self.share.slots();
        let recorded = new.owners.remove(&self.seat.name).unwrap_or_default();
        let others = new.taken_slots();
        let is_kept = held.is_subset(&recorded) || !table.is_settled;
        if !is_kept || !held.is_disjoint(&others) {
            return Err(Lost::Table);
        }
        let free: SlotSet = Slot::all().filter(|slot| !others.contains(slot)).collect();
        let taken: SlotSet = match new.is_settled {
            true => wanted.intersection(&free).filter(|slot| !held.contains(slot)).copied().collect(),
            false => SlotSet::new(),
        };
        new.owners.insert(self.seat.name.clone(), held.union(&taken).copied().collect());
        Ok(taken)
    }

    /// Writes the table if it is another one, or if the Lease has to be renewed for those who go by it.
    async fn write(&mut self, there: Option<&Value>, table: &Table, new: &Table) -> Result<(), ClusterError> {
        let Some(lease) = there else {
            let lease = new.object(&self.seat.namespace, None, &self.seat.timing);
            return self.seat.cluster.create(&lease, FIELD_MANAGER, false).await.map(drop);
        };
        let is_held = Holder::read(lease) == Holder::Replicas;
        let age = self.sightings.age(TABLE, lease.resource_version());
        let is_same = without_empty(new) == without_empty(table);
        if is_held && is_same && age < self.seat.timing.group / 3 {
            return Ok(());
        }
        let lease = new.object(&self.seat.namespace, Some(lease), &self.seat.timing);
        self.seat.cluster.replace(&lease, FIELD_MANAGER, false).await.map(drop)
    }

    /// Who lives. A Lease that has expired is ended by a write that fails if it was renewed meanwhile: only
    /// after that is it certain that its replica writes nothing more.
    async fn living(&mut self, view: &View, table: &Table) -> Result<Living, ClusterError> {
        let mut living = Living::default();
        living.live.insert(self.seat.name.clone());
        for member in view.members.iter().filter(|member| member.name != self.seat.name) {
            let age = self.sightings.age(&member.name, member.object.resource_version());
            if member.is_evicted {
                living.dead.insert(member.name.clone());
            } else if age <= self.seat.timing.holds {
                living.live.insert(member.name.clone());
            } else {
                self.seat.cluster.replace(&member.evicted(), FIELD_MANAGER, false).await?;
                tracing::warn!(replica = %member.name, "its Lease has expired: its Applications are taken over");
                living.dead.insert(member.name.clone());
            }
        }
        // Somebody deleted their Leases, which they have to notice first.
        for gone in table.owners.keys().filter(|name| view.members.iter().all(|member| member.name != **name))
        {
            if *gone != self.seat.name && self.sightings.age(gone, "gone") > self.seat.timing.holds {
                living.dead.insert(gone.clone());
            }
        }
        let is_known = |name: &str| {
            name == TABLE
                || name == "table"
                || table.owners.contains_key(name)
                || view.members.iter().any(|member| member.name == name)
        };
        self.sightings.retain(is_known);
        Ok(living)
    }

    /// Deletes the Leases of those that are dead and have nothing left.
    async fn clear_away(&self, view: &View, living: &Living) {
        let Ok(resource) = self.seat.cluster.resource(&kind()).await else { return };
        for member in view.members.iter().filter(|member| living.dead.contains(&member.name)) {
            let name = (self.seat.namespace.as_str(), member.name.as_str());
            // Another replica does it, or this one the next time.
            let _ = self
                .seat
                .cluster
                .delete(&resource, name, Propagation::Background, member.object.uid(), false)
                .await;
        }
    }

    fn note_members(&mut self, count: usize) {
        self.share.note_replicas(count);
        if self.members != count {
            tracing::info!(replicas = count, "share the work");
            self.members = count;
        }
    }
}

/// A table as it is read back: who has nothing is not in it.
fn without_empty(table: &Table) -> Table {
    let mut table = table.clone();
    table.owners.retain(|_, slots| !slots.is_empty());
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_lease_expires_by_this_clock_and_not_while_nothing_can_be_seen() {
        let timing = Timing::default();
        let mut sightings = Sightings::default();
        sightings.begin(timing.writes);
        assert_eq!(sightings.age("a", "1"), Duration::ZERO);
        for _ in 0..4 {
            tokio::time::advance(Duration::from_secs(2)).await;
            sightings.begin(timing.writes);
        }
        assert_eq!(sightings.age("a", "1"), Duration::from_secs(8));
        tokio::time::advance(Duration::from_secs(60)).await;
        sightings.begin(timing.writes);
        assert_eq!(sightings.age("a", "1"), Duration::ZERO, "it could not be seen to be renewed");
        tokio::time::advance(Duration::from_secs(5)).await;
        assert_eq!(sightings.age("a", "2"), Duration::ZERO, "renewed");
    }

    #[test]
    fn whoever_is_taken_over_from_has_stopped_before() {
        let timing = Timing::default();
        assert!(timing.writes + timing.every < timing.holds);
        assert!(timing.every + timing.attempt < timing.writes, "one attempt may fail");
    }

    #[test]
    fn names_are_those_of_objects() {
        assert!(replica_name("Pod_7.example").starts_with("tiphys-pod-7-example-"));
        assert!(replica_name("").starts_with("tiphys-1"));
        assert!(replica_name(&"x".repeat(900)).len() < 253);
    }
}
