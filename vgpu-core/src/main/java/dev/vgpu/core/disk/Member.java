package dev.vgpu.core.disk;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFileAttributeView;
import java.nio.file.attribute.UserPrincipalLookupService;

/**
 * A user of the seat's group, other than the seat's own user and root. Immutable.
 *
 * @param user the user's name, or its number if it has no name
 * @param group the name or number of the group of the user's process
 */
public record Member(String user, String group) {
  /** {@return whether it is the same user, whatever its group} */
  public boolean isSameUser(Member other) {
    return user.equals(other.user);
  }

  /** Gives a link to this user. */
  void own(Path link) throws IOException {
    UserPrincipalLookupService names = link.getFileSystem().getUserPrincipalLookupService();
    PosixFileAttributeView view =
        Files.getFileAttributeView(link, PosixFileAttributeView.class, LinkOption.NOFOLLOW_LINKS);
    view.setGroup(names.lookupPrincipalByGroupName(group));
    view.setOwner(names.lookupPrincipalByName(user));
  }
}
