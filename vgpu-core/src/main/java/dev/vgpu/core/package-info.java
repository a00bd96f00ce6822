/**
 * Types that several packages of the core share, and the tests of each promise.
 *
 * <p>The left column lists the promises to tenants. The right column lists the tests that fail if a
 * promise does not hold. Tests whose names end in {@code IT} run real processes; they are here and
 * in {@code vgpu-cuda} and {@code vgpu-bench}. The other tests of the hook and its pages are in
 * {@code vgpu-cuda}. All other tests are here.
 *
 * <table>
 *   <caption>Promises and their tests</caption>
 *   <tr><th>promise</th><th>tests</th></tr>
 *   <tr><td><b>Policies</b></td><td></td></tr>
 *   <tr><td>BEST_EFFORT: N busy tenants get 1/N each of the time left by the others</td>
 *     <td>{@code ShareSchedulerProperties.busyBestEffortTenantsOfALevelGetEqualParts},
 *     {@code SharingTest.busyBestEffortProcessesUseTheGpuTogetherInEqualParts}</td></tr>
 *   <tr><td>FIXED_SHARE: never more than the share, even when the GPU is idle</td>
 *     <td>{@code ShareSchedulerProperties.fixedShareIsNeverExceeded},
 *     {@code ShareSchedulerTest.fixedShareIsACapOnAnIdleGpu}</td></tr>
 *   <tr><td>FIXED_SHARE: never less when the tenant has work</td>
 *     <td>{@code ShareSchedulerProperties.guaranteedShareIsGiven},
 *     {@code ShareAccuracyProperties.everySecondIsWithinOnePointOfIdeal}</td></tr>
 *   <tr><td>BURST_SHARE: never less than the share when the tenant has work</td>
 *     <td>{@code ShareSchedulerProperties.guaranteedShareIsGiven}</td></tr>
 *   <tr><td>BURST_SHARE: idle time is shared, and taken back on demand</td>
 *     <td>{@code ShareSchedulerTest.burstTakesAllOfAnIdleGpuAndGivesItBack},
 *     {@code ShareSchedulerProperties.theGpuIsNotIdleWhileSomebodyMayUseIt},
 *     {@code IdleUntoldTest.turnThatBecameIdleUnseenIsPassedOn},
 *     {@code ShareSchedulerTest.surplusIsSharedInEqualPartsAmongBurstAndBestEffort}</td></tr>
 *   <tr><td>Several policies may share one GPU; the long run is exact</td>
 *     <td>{@code ShareAccuracyProperties.longRunIsWithinATenthOfAPoint}</td></tr>
 *   <tr><td>Admission: no group's guarantees exceed 100 %; quotas never exceed the memory</td>
 *     <td>{@code AdmissionProperties.nothingIsOvercommitted},
 *     {@code AdmissionProperties.requestIsGrantedExactlyWhereThereIsRoom},
 *     {@code PoolTest.offlineSharesAreAdmittedApart}</td></tr>
 *   <tr><td>Oversubscription of memory is a separate, explicit option</td>
 *     <td>{@code MemoryReclaimTest.quotasMayTakeMoreThanTheGpuHasButThoseOfOnlineTenantsNot},
 *     {@code GpuSettingsTest.oversubscriptionOutOfRangeIsRefused}</td></tr>
 *   <tr><td><b>Classes</b></td><td></td></tr>
 *   <tr><td>A runnable ONLINE tenant preempts OFFLINE ones at once</td>
 *     <td>{@code ShareSchedulerTest.onlineArrivalShutsOfflineAtOnceAndRunsNext},
 *     {@code ShareSchedulerProperties.offlineRunsOnlyWhereNoOtherTenantMayRun},
 *     {@code ExpressLaneIT.offlineStopsForBurstsWhileTheSeatStandsStill}</td></tr>
 *   <tr><td>NEARLINE preempts OFFLINE, and is never preempted</td>
 *     <td>{@code ShareSchedulerTest.nearlinePreemptsOfflineAndIsNotPreempted}</td></tr>
 *   <tr><td>ONLINE and NEARLINE divide the GPU by their policies</td>
 *     <td>{@code ShareSchedulerTest.nearlineGuaranteeHoldsBesideAGreedyOnlineTenant},
 *     {@code ShareAccuracyProperties.everySecondIsWithinOnePointOfIdeal}</td></tr>
 *   <tr><td>Of the tenants entitled to run, an ONLINE one gets the next turn</td>
 *     <td>{@code ShareLevelProperties.picksWhomALookAtAllWouldFind}</td></tr>
 *   <tr><td>OFFLINE gets the time that the others may not use</td>
 *     <td>{@code ShareSchedulerTest.offlineGetsWhatACappedOnlineTenantLeaves},
 *     {@code HeldBackTest.offlineSharesHoldBesideAnOnlineTenantAtItsCap},
 *     {@code AgreementIT.onlineTenantAtItsCapBesideOfflineOnes}</td></tr>
 *   <tr><td>OFFLINE never gets less than its floor; with a floor it never starves</td>
 *     <td>{@code ShareSchedulerProperties.offlineNeverStarvesWithAFloor},
 *     {@code ShareSchedulerTest.offlineFloorHolds},
 *     {@code SharingTest.floorHoldsAlsoAgainstTheLane}</td></tr>
 *   <tr><td>The floor is 0 % by default</td>
 *     <td>{@code GpuSettingsTest.defaultsAreTheDocumentedOnes},
 *     {@code ShareSchedulerTest.offlineStarvesBesideABusyOnlineTenantWithoutAFloor}</td></tr>
 *   <tr><td>While neither has work, OFFLINE tenants divide the GPU by their policies</td>
 *     <td>{@code ShareSchedulerTest.fixedSharesDivideTheGpu},
 *     {@code ShareAccuracyProperties.everySecondIsWithinOnePointOfIdeal}</td></tr>
 *   <tr><td>Policies hold among ONLINE tenants too</td>
 *     <td>{@code ShareAccuracyProperties.everySecondIsWithinOnePointOfIdeal},
 *     {@code SharingTest.turnsGrowWithWhatAHandOverCosts}</td></tr>
 *   <tr><td><b>Memory</b></td><td></td></tr>
 *   <tr><td>The committed total never exceeds the quota, by not one byte</td>
 *     <td>{@code DeathIT.quotaIsExactUnderFourProcessesOfFourThreads},
 *     {@code MemoryLedgerProperties.theTotalIsWhatTheLivingHoldWhereverOneDies}</td></tr>
 *   <tr><td>A refused allocation is the driver's own out-of-memory error</td>
 *     <td>{@code CudaHookIT.aProgramGetsItsQuotaAndNotAByteMore},
 *     {@code HookTest.hookKeepsItsPromises}</td></tr>
 *   <tr><td>Calls with a memory budget wait by class, then arrival; none fails, none starves</td>
 *     <td>{@code BudgetsTest.budgetsOfRunningCallsNeverExceedTheQuota},
 *     {@code BudgetsTest.largeCallIsNotStarvedBySmallOnes},
 *     {@code UrgencyQueueProperties.servesInOrderOfClassThenArrival}</td></tr>
 *   <tr><td>A program sees its quota and its own use</td>
 *     <td>{@code HookTest.hookKeepsItsPromises},
 *     {@code RunIT.hoardGetsItsQuotaAndNotAByteMore}</td></tr>
 *   <tr><td>A process that dies gives everything back; nothing else stalls</td>
 *     <td>{@code DeathIT.killedAndStoppedProcessesGiveEveryByteBackAndFailNobody},
 *     {@code CudaHookIT.whatAKilledProgramHeldIsBackAtOnce}</td></tr>
 *   <tr><td>Reclaim climbs its ladder until the high watermark is free</td>
 *     <td>{@code ReclaimPlannerProperties.memoryIsFreedUnlessNothingIsLeftToTake},
 *     {@code ReclaimPlannerProperties.everyStepOfTheLadderHasItsTimeAndItsOrder}</td></tr>
 *   <tr><td>(1) ask</td>
 *     <td>{@code ReclaimPlannerTest.ownerThatYieldsIsOnlyAsked},
 *     {@code MemoryReclaimTest.ownerInAnotherProcessIsAskedAndYields}</td></tr>
 *   <tr><td>(2) suspend OFFLINE processes</td>
 *     <td>{@code ReclaimIT.offlineProgramIsSuspendedForAnOnlineOneAndGoesOnWithItsDataIntact},
 *     {@code ReclaimIT.nextHolderOfTheSeatLetsThoseGoOnThatTheLastOneHasSuspended}</td></tr>
 *   <tr><td>(3) end them</td>
 *     <td>{@code ReclaimIT.programThatCannotBeSuspendedIsEndedAndHeldBack},
 *     {@code ReclaimIT.programThatResistsIsKilled}</td></tr>
 *   <tr><td>It never touches ONLINE</td>
 *     <td>{@code ReclaimPlannerProperties.onlineIsNeverTouched}</td></tr>
 *   <tr><td>Every step is an event with the reason in it</td>
 *     <td>{@code LeaseTablesTest.everyKindOfEventHasALine},
 *     {@code ReclaimIT.programThatCannotBeSuspendedIsEndedAndHeldBack}</td></tr>
 *   <tr><td><b>Failure</b></td><td></td></tr>
 *   <tr><td>If the seat's holder dies, tenants keep running and no virtual GPU is lost</td>
 *     <td>{@code SeatIT.holderKilledUnderLoadFailsNoTenantAndLosesNoLease},
 *     {@code TakeOverIT.nothingIsLostWhenTheHolderIsKilled},
 *     {@code CudaHookIT.aProgramGoesOnUnderTheNextSeat}</td></tr>
 *   <tr><td>Enforcement that cannot attach refuses by default; OPEN is a choice</td>
 *     <td>{@code AttachFailureIT.leaseThatDoesNotExistIsRefusedUnlessOpenWasChosen},
 *     {@code PoolTest.demandsThatNoBackendMeetsAreRefusedOrServedOpen}</td></tr>
 *   <tr><td>Nothing that we inject ever exits, hangs or crashes the host program</td>
 *     <td>{@code HookTest.hookKeepsItsPromises},
 *     {@code NativeTest.sanitizersFindNothing},
 *     {@code HostileIT.randomBytesInItsOwnReportPageHarmNobodyElse}</td></tr>
 *   <tr><td><b>For maintainers</b></td><td></td></tr>
 *   <tr><td>The same events give the same decisions</td>
 *     <td>{@code ShareSchedulerProperties.theSameEventsGiveTheSameDecisions}</td></tr>
 *   <tr><td>Closing all tenants restores the initial state</td>
 *     <td>{@code ForgottenTenantsProperties.afterAllHaveGoneDecisionsAreAsOnTheFirstDay},
 *     {@code AdmissionProperties.closingAllRestoresTheStartState}</td></tr>
 *   <tr><td>Lags are bounded; debts are bounded and paid</td>
 *     <td>{@code ShareAccuracyProperties.lagIsBounded},
 *     {@code ShareSchedulerTest.anOverrunIsPaidBack},
 *     {@code ShareSchedulerTest.aGiantCallLocksItsTenantOutForABoundedTime}</td></tr>
 *   <tr><td>A tenant that misreports its use harms only itself</td>
 *     <td>{@code DistrustProperties.whoLiesAboutItsUseHarmsNobodyElse},
 *     {@code ExpressLaneTest.aLiarIsToldOnceAndBelievedAsFarAsItCanBe}</td></tr>
 *   <tr><td>Turns on several GPUs: all or none, without deadlock</td>
 *     <td>{@code GangGateProperties.turnsAreOnAllGpusOrNone},
 *     {@code GangGateProperties.everybodyGoesOn}</td></tr>
 *   <tr><td>Waiting requests: by class, then arrival; backfill never delays the first</td>
 *     <td>{@code BackfillProperties.whoIsServedOutOfTurnNeverDelaysTheFirst},
 *     {@code BackfillProperties.equalsAreServedByClassThenArrival}</td></tr>
 * </table>
 */
@NullMarked
package dev.vgpu.core;

import org.jspecify.annotations.NullMarked;
