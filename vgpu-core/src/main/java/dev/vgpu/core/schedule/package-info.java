/**
 * The choice of the next tenant on the GPU: pure state machines, stepped with the time as an
 * argument.
 *
 * <h2>The algorithm, and why this one</h2>
 *
 * <p>Each tenant that has work has a <em>lag</em>: the GPU time that an ideal division would have
 * given it by now, less what it got. A turn goes to a tenant whose lag is not negative
 * (<em>eligible</em>), and of those to the one whose turn is due first. That is EEVDF (Stoica,
 * Abdel-Wahab, 1995), with the rates of our policies: the guaranteed part, plus an equal part of
 * the surplus for {@code BURST_SHARE} and {@code BEST_EFFORT}. Only real work of the GPU is
 * charged. Why not another one:
 *
 * <ul>
 *   <li><b>Deficit round robin</b> is cheaper, but a tenant waits a whole round, which grows with
 *       the number of tenants; and it has no notion of which tenant is due first.
 *   <li><b>Constant-bandwidth servers</b> give caps and guarantees, but no division of the rest. A
 *       fixed share alone <em>is</em> one here: without takers of surplus a lag is a token bucket.
 *   <li><b>Stride or start-time fair queueing</b> let a tenant run ahead by as many turns as there
 *       are others. Here eligibility bounds that, and makes a cap a cap.
 * </ul>
 *
 * <h2>Bounds</h2>
 *
 * <p>Let <i>q</i> be the longest turn of a tenant, <i>c</i> its use after its gate was shut (a
 * kernel, a call), and <i>r</i> its rate.
 *
 * <p><b>Not below:</b> a turn is given at lag ≥ 0 only, and while it lasts the lag falls by (1 − r)
 * per unit of use. So lag ≥ −(q + c)(1 − r).
 *
 * <p><b>Not above:</b> the lags of those who divide the surplus sum to 0, so where somebody is
 * behind, somebody else is ahead, by no more than the bound above; and of those who may run, the
 * one whose turn is due first is next. A turn is due once its tenant is owed what a turn takes: all
 * of (q + c), as was seen of late, and not q alone. Then what is due to all by any time is no more
 * than that time, none is later than one turn of another that had begun, and lag ≤ (q + c) + r (q +
 * c). Were q alone due, ten tenants of 1 % that are due together would use ten times c more than
 * they are due, while one of 90 % waits.
 *
 * <p><b>Online before nearline:</b> of those who may run an online tenant is next, until a nearline
 * one is owed a whole turn: then that counts as online. Without this it would wait for a turn of
 * each online one, and be behind by r times all of these. So before it stands in line with them it
 * is owed q, and from there on the bound above holds: lag ≤ q + (q + c)(1 + r).
 *
 * <p>{@code ShareAccuracyProperties.lagIsBounded} holds all to −(q + c), and online ones to 2 (q +
 * c), nearline ones to q more. In any window of time a tenant is off its part by no more than the
 * range of its lag.
 *
 * <p><b>Fixed shares alone</b> are parts of the time that passes. What hand-overs take of it does
 * not count at first, as it could not be made up for where the shares sum to 100. Whenever all are
 * at their cap there is time to spare, and it counts after all, as does all time that passes at the
 * cap, whoever less urgent has the GPU meanwhile. The clock of such a level never runs faster than
 * time passes. So a share is exact where hand-overs take less than the shares leave, and else at
 * least 99 hundredths of it, by the length of turns (below); in no case more than the share. What a
 * long kernel of offline work still has of the GPU once it gave way counts as the tenant's own,
 * where the device slices them: beside kernels of 20 ms a share of 90 % may come to 56 %.
 *
 * <p>So that a window of one second is within one point (10 ms), no turn changes any lag by more
 * than {@code TurnLength} allows: {@code q (1 − r) ≤ ACCURACY_NS}. Within that and the settings'
 * bounds a turn is as long as makes its hand-over, as measured, cost less than one hundredth. Where
 * hand-overs are dear and tenants many, both cannot be had, and accuracy goes first. What a tenant
 * is known to use after its gate was shut is taken off its turn beforehand.
 *
 * <p><b>Debt.</b> Overuse is owed, and paid back by waiting, for {@code lockoutNs} at the tenant's
 * rate at most. The rest is forgiven, at the cost of the tenants that divide the surplus. Short of
 * that the long run is exact.
 *
 * <p><b>Pauses.</b> Where a tenant leaves part of its turn unused and offline work fills it, that
 * time counts for its level only if nobody else of the level might have used it. Else all who wait
 * would be owed more and more by nobody, and only the most urgent of them, or those with the
 * largest guarantee, would ever run. And what a tenant is owed does not grow in its own turn, but
 * for what it has not told yet: so nobody saves up what it did not use, and keeps others waiting
 * with it later. A floor turn pays for at least a quarter of the time that it takes from the upper
 * level. {@code StandStillProperties} holds how long a tenant waits that owes nothing: two turns of
 * each other one, and until its own turn is due. A level's time passes as its tenants use the GPU.
 * So in the turns of one that pauses without a word, and uses a part <i>d</i> of them, what is due
 * takes 1 / <i>d</i> as long.
 *
 * <p><b>Standing still.</b> If no gate is open, no work is ending and somebody might run, the next
 * one gets a turn after 100 ms whatever the accounts say, and the log tells so ({@code
 * StandStill}).
 *
 * <p><b>Classes.</b> Two levels, each divided so. The lower one lives on the time in which nobody
 * of the upper one may run, and on its floor, a token bucket that only those turns are charged to
 * that it took from the upper one. So long pauses of the upper level do not use it up.
 *
 * <h2>Gates that are open together</h2>
 *
 * <p>Gates are open together in two cases ({@link dev.vgpu.core.schedule.SchedulerState} says
 * which, and why).
 *
 * <ul>
 *   <li><b>Of two levels</b>, where both <em>yield by themselves</em>: then the processes see
 *       within microseconds who is urgent, nothing is handed over, and GPU time is that of one at a
 *       time as before. A floor turn shuts the upper gates, and tells the lower ones not to yield.
 *   <li><b>Within a level</b>, where all who have work are entitled to the same and have no cap,
 *       are eight at most, have work nearly all the time, and are measured on the device. (Who
 *       waits for each of its short kernels waits for others' slices with each of them.) The device
 *       gives slices; whoever is ahead by the same bound as above is held back. What each used is
 *       what it says, times the part of that time that was its own: measured times run on while
 *       others have their slices, as often as those have work, by what they say ({@code Slices}).
 *       For those who pause that is an estimate, within some 3 % where kernels are longer than
 *       slices. Hardly anybody is ever held back, and it is as exact as turns, without hand-overs.
 *       Where shares differ, each holding back would leave an error of some tenths of a
 *       millisecond, and these sum up.
 *   <li><b>For a moment, as a turn is passed on</b> ({@code EarlyTurn}): where both are measured on
 *       the device, the next gate opens while the last work of the turn before ends, so that the
 *       GPU does not stand still meanwhile (0.2 to 0.3 ms between processes). Both say that they
 *       used the time in which both had work; how much of it each had follows from the device's
 *       time slices, and the rest is given back: whichever of them ends first, and also where the
 *       later one tells only in the next turn what it used ({@code EarlyTurns}). Without that the
 *       tenants of a GPU would sum to 104 of 100 % of its time, and the small ones would pay most
 *       of it, who have the most turns for their time. {@code bench fairness} shows what was booked
 *       beside what the programs' own events say.
 *   <li>Offline tenants take turns where more urgent ones are there: what three have on the GPU
 *       delays an arrival three times as long as what one has.
 * </ul>
 *
 * <h2>Reports that are not believed</h2>
 *
 * <p>The scheduler does not believe a gate that reports more use than the time since its last
 * report, or less than before. A gate that claims work, and reports next to nothing of it through a
 * whole turn, is charged the turn. Its later report is then paid ({@code DistrustProperties}).
 *
 * <h2>Cost</h2>
 *
 * <p>Tenants with equal guarantees keep their order while time passes, so that a heap for each
 * guarantee holds them; a decision looks at the first of each, of which there are about twenty at
 * most as shares are whole percents that sum to 100. Charging moves one tenant in its heap: O(log
 * n), nothing is allocated. {@code ./vgpu bench scheduler} measures it.
 */
@NullMarked
package dev.vgpu.core.schedule;

import org.jspecify.annotations.NullMarked;
