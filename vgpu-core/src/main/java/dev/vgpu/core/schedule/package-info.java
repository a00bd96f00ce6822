/**
 * Chooses which tenant uses the GPU next. Pure state machines, stepped with the time as an
 * argument.
 *
 * <h2>The algorithm, and why this one</h2>
 *
 * <p>Each tenant with work has a <em>lag</em>: the GPU time that an ideal division would have given
 * it by now, less what it got. A tenant is <em>eligible</em> while its lag is not negative. The
 * next turn goes to the eligible tenant whose turn is due first. This is EEVDF (Stoica,
 * Abdel-Wahab, 1995) with the rates of our policies: a tenant's guaranteed part, plus an equal part
 * of the surplus for {@code BURST_SHARE} and {@code BEST_EFFORT}. Only time in which work really
 * ran on the GPU is charged. The alternatives:
 *
 * <ul>
 *   <li><b>Deficit round robin</b> is cheaper. But a tenant waits for a whole round, which grows
 *       with the number of tenants, and there is no notion of which tenant is due first.
 *   <li><b>Constant-bandwidth servers</b> give caps and guarantees, but do not divide the rest. A
 *       fixed share alone <em>is</em> such a server here: if no tenant takes surplus, a lag is a
 *       token bucket.
 *   <li><b>Stride scheduling and start-time fair queueing</b> let a tenant run ahead by as many
 *       turns as there are other tenants. Here eligibility bounds that, and makes a cap a real cap.
 * </ul>
 *
 * <h2>Bounds</h2>
 *
 * <p>Let <i>q</i> be the longest turn of a tenant, <i>c</i> its use after its gate was shut (a
 * kernel, a call), and <i>r</i> its rate.
 *
 * <p><b>Lower bound.</b> A turn is given only at lag ≥ 0. During the turn the lag falls by (1 − r)
 * per unit of use. So lag ≥ −(q + c)(1 − r).
 *
 * <p><b>Upper bound.</b> The lags of the tenants that divide the surplus sum to 0. If one tenant is
 * behind, others are ahead, each by no more than the lower bound allows. A turn is due once its
 * tenant is owed what the turn takes: all of (q + c), as recently observed, not q alone. With this
 * rule, the use due to all tenants by any time is no more than that time. So each turn is late by
 * at most one turn of another tenant, which had already begun, and lag ≤ (q + c) + r (q + c). If q
 * alone were due, ten tenants of 1 % that are due together would use 10 c more than they are due,
 * while a tenant of 90 % waits.
 *
 * <p><b>Online before nearline.</b> Of the tenants that may run, an online one is next, until a
 * nearline one is owed a whole turn. From then on, the nearline tenant counts as online. Otherwise
 * it would wait for a turn of every online tenant, and fall behind by r times all these turns. So
 * it is owed q before it stands in line with them, and then the bound above holds: lag ≤ q + (q +
 * c)(1 + r).
 *
 * <p>{@code ShareAccuracyProperties.lagIsBounded} tests that no lag is below −(q + c), that no lag
 * of an online tenant is above 2 (q + c), and that no lag of a nearline tenant is above that by
 * more than q. In any window of time, a tenant's use differs from its ideal part by no more than
 * the range of its lag.
 *
 * <p><b>Fixed shares alone.</b> If no tenant of a level takes surplus, shares are parts of elapsed
 * time. Time lost to hand-overs is not counted at first, because it could not be made up if the
 * shares sum to 100. Whenever all tenants are at their cap, there is spare time, and the lost time
 * is counted after all. All time at the cap counts too, even if a less urgent tenant has the GPU.
 * The clock of such a level never runs faster than time passes. A tenant that begins while the
 * clock is behind has no part in that time, and one that leaves keeps its part. So a share is exact
 * if hand-overs take less time than the shares leave. Otherwise a tenant gets at least 99
 * hundredths of its share, owing to the length of turns (below). It gets no more than its share
 * ({@code CapProperties}). Offline work that gave way may still be on the GPU when the tenant's
 * turn begins. The device then time-slices the two. Both report the whole time, and what each did
 * not have is given back ({@code BesideOffline}). Each change from one to the other takes 0.14 ms,
 * in which nothing runs and which is charged to neither. But the GPU time that a long offline
 * kernel still needs is gone: beside kernels of 12 ms that begin whenever the tenant is at its cap,
 * a share of 90 % may come to 56 %.
 *
 * <p><b>Length of turns.</b> A window of one second must be accurate to one point (10 ms). So no
 * turn changes any lag by more than the settings allow: {@code q (1 − r) ≤ ACCURACY_NS}. Within
 * that limit and those of the settings, a turn is long enough for its measured hand-over to cost
 * less than one hundredth. A turn is shortened in advance by what its tenant is known to use after
 * its gate was shut.
 *
 * <p>If hand-overs are expensive, both goals cannot be met, and short turns are not even accurate:
 * in a window w, a tenant lacks r w h / q, its part of what hand-overs of length h take, besides
 * the lag q (1 − r). The sum is smallest where the two are equal, at {@code q (1 − r) = √(w h r (1
 * − r))}. That is the limit if it is above {@code ACCURACY_NS}. For two tenants of 50 % and
 * hand-overs of 0.3 ms it is 8.7 ms, so that turns last 17 ms instead of 9. A tenant that waits for
 * such a turn of another falls behind by r times what it is longer: with 5 % beside 60 % and
 * hand-overs of 0.34 ms, by 0.6 ms.
 *
 * <p><b>Debt.</b> A tenant pays back overuse by waiting, for at most {@code lockoutNs} at its rate.
 * The rest is forgiven, at the cost of the tenants that divide the surplus. If nothing is forgiven,
 * the long run is exact.
 *
 * <p><b>Pauses.</b> If a tenant leaves part of its turn unused and offline work fills it, that time
 * counts for the tenant's level only if no other tenant of the level could have used it. Otherwise
 * all waiting tenants would be owed more and more by no one, and only the most urgent of them, or
 * those with the largest guarantee, would ever run. What a tenant is owed does not grow during its
 * own turn, except for use that it has not reported yet. So no tenant can save up unused time and
 * make others wait for it later. A floor turn pays for at least a quarter of the time that it takes
 * from the upper level. {@code StandStillProperties} tests how long a tenant without debt waits:
 * two turns of each other tenant, and until its own turn is due. A level's time advances as its
 * tenants use the GPU. So in the turns of a tenant that pauses without reporting it, and uses a
 * part <i>d</i> of them, a turn takes 1 / <i>d</i> as long to become due.
 *
 * <p><b>Standing still.</b> If no gate is open, nothing runs and some tenant may run, a turn is
 * given within 100 ms, whatever was lost or went wrong, and the log says so ({@code StandStill}).
 * There are three such states:
 *
 * <ul>
 *   <li><b>No work is ending, and a tenant waits.</b> After 100 ms it gets a turn, whatever the
 *       accounts say.
 *   <li><b>Work has ended, and nobody reported it.</b> A gate of processes is asked every 50 ms. If
 *       it says twice in a row that nothing runs, the turn is over: at most 100 ms after the end. A
 *       report that is on its way when the gate is first asked is not taken for lost.
 *   <li><b>A tenant has work, and nobody reported it.</b> While nobody waits who may run, the gates
 *       of processes are asked in the same way, also while work is ending. So losing both reports
 *       takes no longer than losing one.
 * </ul>
 *
 * <p>Three states are not such states, and end in other ways. Work that is still on the GPU after
 * its gate was shut is no standstill; the backend believes that for 200 ms. A call that is inside
 * its gate runs, and its own thread reports its end with the seat held; if it is in another
 * process, that process is checked every 5 ms. A gang keeps its turn until it has those on the
 * other GPUs, or its patience ends. While the seat is stopped, nothing is decided: the bound counts
 * from when it continues. The clock is {@link System#nanoTime()}, which may run ahead and is never
 * set back.
 *
 * <p><b>Classes.</b> There are two levels, and each is divided as described. The lower level gets
 * the time in which no tenant of the upper level may run, and its floor. The floor is a token
 * bucket. Only turns taken from the upper level are charged to it, so long pauses of the upper
 * level do not use it up. The upper level pays for floor turns from its surplus first, no faster
 * than the floor takes. So its guarantees are parts of elapsed time, as long as they and the floor
 * together fit ({@code ShareSchedulerProperties.guaranteedShareIsGiven}). Where all shares are
 * fixed, spare time pays.
 *
 * <h2>Gates that are open together</h2>
 *
 * <p>Gates are open together in three cases ({@link dev.vgpu.core.schedule.SchedulerState} says
 * which, and why).
 *
 * <ul>
 *   <li><b>Gates of two levels</b>, if both <em>yield by themselves</em> and no other tenant of the
 *       upper level waits for its turn. The processes then see within microseconds which tenant is
 *       urgent. Nothing is handed over, and GPU time is still that of one tenant at a time. If
 *       another upper tenant waits, its turn follows. Between two turns no urgent work runs, so
 *       offline kernels would begin there and share the GPU with the turn that follows: kernels of
 *       8 ms took 45 % of the GPU from five tenants that were entitled to all of it. A floor turn
 *       shuts the upper gates, and tells the lower ones not to yield.
 *   <li><b>Gates of tenants that fit beside each other</b>, whether they pause or not, and whatever
 *       their shares: at most eight of one class, none with a cap, which use little of the GPU
 *       together ({@link Fit}). None of them is held back, since none would go faster. What each
 *       launches is compared with what it launches in its own turns. So the arrangement ends within
 *       two looks of 50 ms once it gives some tenant less than its turns would. The device gives
 *       equal time slices, and a tenant's measured time also runs during the slices of others. So
 *       its use is the time that it reports, times the part of that time that was its own, which
 *       follows from how often the others report work ({@code Slices}). This is an estimate, within
 *       some 3 % if kernels are longer than slices.
 *   <li><b>Gates of two consecutive turns</b>, for a moment, if both tenants are measured on the
 *       device ({@code EarlyTurn}). The next gate opens shortly before the last work of the
 *       previous turn usually ends, so that the GPU is not idle meanwhile (0.2 to 0.3 ms between
 *       processes). It opens no sooner, because the GPU would change to the new process at once,
 *       and then back and forth until that work has ended; each change takes 0.14 ms. Both tenants
 *       report the time in which both had work. How much of it each had follows from the device's
 *       time slices, and the rest is given back, whichever ends first. This holds even if the later
 *       one reports its use only in the next turn ({@code EarlyTurns}). Without this correction,
 *       the tenants of a GPU would add up to 104 % of its time. Tenants with small shares would pay
 *       most of that, because they have the most turns for their time. {@code bench fairness}
 *       compares the booked time with the programs' own events.
 * </ul>
 *
 * <p>Busy tenants take turns, also if all are entitled to the same. Without turns, an NVIDIA H200
 * divides the time of two busy processes into slices of 2 ms, and 6.8 % of its time is lost to the
 * changes. With kernels of 0.05 ms, each waited for, 68 % is lost.
 *
 * <p>Offline tenants take turns among themselves while more urgent tenants exist: the work that
 * three tenants have on the GPU delays an arrival three times as long as that of one.
 *
 * <h2>Reports that are not believed</h2>
 *
 * <p>The scheduler does not believe a gate that reports more use than the time since its last
 * report, or a lower total than before. A gate that claims to have work but reports next to no use
 * for a whole turn is charged for the turn. Use that it reports later then counts as paid ({@code
 * DistrustProperties}). An offline tenant is not charged for time in which urgent work, or the
 * express lane in its short pauses, held it ({@code LanePauses}).
 *
 * <h2>Cost</h2>
 *
 * <p>Tenants with equal guarantees keep their order as time passes, so each guarantee has a heap. A
 * decision looks at the first tenant of each heap. There are at most about twenty heaps, because
 * shares are whole percents that sum to 100. Charging moves one tenant in its heap: O(log n),
 * without allocation. {@code ./vgpu bench scheduler} measures it.
 */
@NullMarked
package dev.vgpu.core.schedule;

import org.jspecify.annotations.NullMarked;
