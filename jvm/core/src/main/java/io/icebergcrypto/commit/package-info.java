/**
 * What metadata goes through before it is committed: {@link io.icebergcrypto.commit.CommitSteps}
 * has the list.
 */
package io.icebergcrypto.commit;
